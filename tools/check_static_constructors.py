"""Checks that no source file of the library runs code before main(): their order is nobody's to know.

Usage: check_static_constructors.py BUILD_FOLDER    prints one line for each; exit status 1 if there are any
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys

from source_files import ROOT

# Files whose initialisers are those of a library's headers, and why.
ELSEWHERE = {"flambeau/aot/choose_saved.cpp": "Boost.Graph's headers define constants",
             "flambeau/library/special/special.cpp": "Boost.Math's headers compute constants"}

# The function that GCC makes of all dynamic initialisers of one source file.
CONSTRUCTOR = re.compile(r"(.*):[0-9a-f]+ t _GLOBAL__sub_I_")


def library_objects(build):
    """{source file: object file} of the library, of those that are built."""
    objects = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        source, made = pathlib.Path(entry["file"]), build / words[words.index("-o") + 1]
        if source.is_relative_to(ROOT / "flambeau") and made.is_file():
            objects[source] = made
    return objects


def with_constructors(objects):
    """Those of the source files whose object has a dynamic initialiser."""
    source_of = {str(made): source for source, made in objects.items()}
    names = subprocess.run(["nm", "--print-file-name", *source_of], capture_output=True, text=True,
                           check=True).stdout
    return sorted({source_of[found[1]] for found in map(CONSTRUCTOR.match, names.splitlines()) if found})


def main(arguments):
    objects = library_objects(pathlib.Path(arguments[0]))
    if not objects:
        print(f"check_static_constructors: expected object files in {arguments[0]}, found none; build first")
        return 1
    found = [s for s in with_constructors(objects) if str(s.relative_to(ROOT)) not in ELSEWHERE]
    for source in found:
        print(f"{source.relative_to(ROOT)}: has a static constructor; make it a function's static variable")
    print(f"check_static_constructors: {len(objects)} files, {len(found)} with static constructors")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
