"""python -m flambeau script.py args: runs a program that says `import torch` on Flambeau."""
import os
import runpy
import sys

from .torch_import import as_torch

USAGE = """usage: python -m flambeau script.py [arguments]
       python -m flambeau -m module [arguments]
       python -m flambeau -c program
Runs a program in which `import torch` means Flambeau."""


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    as_torch()
    if arguments[0] == "-c" and len(arguments) > 1:
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    elif arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
