"""Checks that all C++ files are formatted as .clang-format says, by clang-format 14: versions differ in
detail.

Usage: check_format.py [--fix]    exit status 1: some file is not; 77: no clang-format 14, nothing checked
"""
import re
import shutil
import subprocess
import sys

from source_files import ROOT, source_files

VERSION = "14"


def clang_format():
    """Path of clang-format of the version that counts, or None."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path:
            text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
            found = re.search(r"version (\d+)", text)
            if found and found[1] == VERSION:
                return path
    return None


def main(arguments):
    tool = clang_format()
    if not tool:
        print(f"check_format: clang-format {VERSION} is not installed; nothing checked")
        return 77
    files = [str(path) for path in source_files()]
    options = ["-i"] if "--fix" in arguments else ["--dry-run", "-Werror"]
    status = 0
    for start in range(0, len(files), 100):
        status |= subprocess.run([tool, *options, *files[start:start + 100]], cwd=ROOT).returncode
    print(f"check_format: {len(files)} files, {'run make format' if status else 'all formatted'}")
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
