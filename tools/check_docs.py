"""Checks that what documents show is what the programs print and what the files say now.

In a Markdown file, a comment stands before each text that is checked:
  <!-- output of PROGRAM ARGUMENT... -->   what BUILD/examples/PROGRAM/PROGRAM prints
  <!-- like output of PROGRAM ... -->      the same, but numbers may differ
  <!-- text of FILE -->                    the file
The text is the fenced block that follows, or, where none follows, everything up to <!-- end -->. Times may
differ everywhere.

Usage: check_docs.py BUILD [--write]    one line for each difference, and exit status 1 if there are any;
                                        --write puts the present text into the documents; status 77 where a
                                        program is not built
"""
import difflib
import pathlib
import re
import subprocess
import sys

from source_files import ROOT

MARKED = re.compile(r"(<!-- (like output|output|text) of ([^>]*?) -->\n)(?:(```\w*\n)(.*?)(^```$)|(.*?)(?=^<!-- end -->$))",
                    re.DOTALL | re.MULTILINE)
TIME = re.compile(r"\d+(\.\d+)?(?= ms\b)")
NUMBER = re.compile(r"\d+(\.\d+)?")


class NotBuilt(Exception):
    pass


def present_text(build, kind, words):
    """What a document should show."""
    if kind == "text":
        return (ROOT / words).read_text()
    program, *arguments = words.split()
    path = build / "examples" / program / program
    if not path.exists():
        raise NotBuilt(f"{path} is not built")
    return subprocess.run([path, *arguments], check=True, capture_output=True, text=True, timeout=300).stdout


def comparable(text, kind):
    return (NUMBER if kind == "like output" else TIME).sub("N", text)


def brought_up_to_date(document, build, differences):
    """The document's text with the present texts in it; notes what differs."""
    def replace(match):
        head, kind, words, fence, fenced, closing, plain = match.groups()
        shown = fenced if fence else plain
        text = present_text(build, kind, words)
        if comparable(shown, kind) == comparable(text, kind):
            return match.group(0)
        lines = difflib.unified_diff(shown.splitlines(), text.splitlines(), "the document", "now",
                                     lineterm="", n=0)
        differences.append(f"{document.relative_to(ROOT)}: {kind} of {words}:\n" + "\n".join(list(lines)[:20]))
        return head + (fence + text + closing if fence else text)
    return MARKED.sub(replace, document.read_text())


def main(build, write):
    differences = []
    for document in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]):
        try:
            text = brought_up_to_date(document, build, differences)
        except NotBuilt as error:
            print(error)
            return 77
        if write:
            document.write_text(text)
    for difference in differences:
        print(difference)
    if differences and not write:
        print(f"{len(differences)} texts are out of date: python3 tools/check_docs.py {build} --write")
    return 1 if differences and not write else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), "--write" in sys.argv[2:]))
