"""Checks that no object file of the libraries runs code before main(): their order is nobody's to know.

Usage: check_static_constructors.py BUILD_FOLDER    prints one line for each; exit status 1 if there are any
"""
import pathlib
import re
import subprocess
import sys

# The function that GCC makes of all dynamic initialisers of one source file.
CONSTRUCTOR = re.compile(r" t _GLOBAL__sub_I_(\S+)")
MEMBER = re.compile(r"^(\S+\.o):$")


def constructors(archive):
    """(object file, first symbol initialised) of every source file with a dynamic initialiser."""
    text = subprocess.run(["nm", str(archive)], capture_output=True, text=True, check=True).stdout
    member = ""
    for line in text.splitlines():
        named = MEMBER.match(line)
        member = named[1] if named else member
        found = CONSTRUCTOR.search(line)
        if found:
            yield member, found[1]


def main(arguments):
    archives = sorted(pathlib.Path(arguments[0]).glob("libfl_*.a"))
    if not archives:
        print(f"check_static_constructors: expected libraries libfl_*.a in {arguments[0]}, found none; build first")
        return 1
    found = [(archive.name, *what) for archive in archives for what in constructors(archive)]
    for archive, member, symbol in found:
        print(f"{archive}({member}): static constructor in the file that defines {symbol}")
    print(f"check_static_constructors: {len(archives)} libraries, {len(found)} static constructors")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
