"""Builds the Python module for the other interpreters of this machine and runs tests/python with each.

    python3 tools/test_pythons.py build                    # each CPython from 3.11 on in PATH and in pyenv
    python3 tools/test_pythons.py build python3.13 ...     # these

Of each minor version the newest is taken, and not that of the interpreter that runs this: `make test` has it.
The module is built over the library of the build folder; it and its environment are in build/python3.13/, for
example.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

from source_files import ROOT

PROBE = """import json, os, sys, sysconfig
header = os.path.join(sysconfig.get_path("include"), "Python.h")
print(json.dumps([sys.implementation.name, list(sys.version_info[:3]), os.path.exists(header)]))"""


def candidates():
    """Programs that may be interpreters."""
    for folder in os.get_exec_path():
        yield from (p for p in sorted(pathlib.Path(folder).glob("python3.*")) if p.suffix[1:].isdigit())
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob("versions/*/bin/python3"))


def newest(programs):
    """{minor version: (version, program)} of those that can build the module."""
    found = {}
    for program in programs:
        done = subprocess.run([program, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if done.returncode:
            continue
        kind, version, headers = json.loads(done.stdout)
        known, _ = found.get(version[1], ([], None))
        if kind == "cpython" and version >= [3, 11] and headers and version > known:
            found[version[1]] = version, program
    return found


def test(build, name, python):
    """Whether all steps succeed."""
    folder = build / name
    interpreter = folder / "environment/bin/python"
    steps = [
        ["tools/setup.sh", folder / "environment", "tools/requirements.txt"],
        ["cmake", "--preset", "release", "-B", folder, "--log-level=WARNING",
         f"-DFLAMBEAU_LIBRARY={build / 'libflambeau.so'}", f"-DFLAMBEAU_PYTHON_EXECUTABLE={interpreter}"],
        ["cmake", "--build", folder],
        [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/python"],
    ]
    variables = {**os.environ, "PYTHON": str(python), "PYTHONPATH": str(folder / "python")}
    return all(subprocess.run(command, cwd=ROOT, env=variables).returncode == 0 for command in steps)


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("build", type=pathlib.Path, help="a build folder that has libflambeau.so")
    parser.add_argument("python", nargs="*", help="interpreters; default: those of this machine")
    arguments = parser.parse_args()
    found = newest(arguments.python or candidates())
    if not arguments.python:
        found.pop(sys.version_info.minor, None)
    if not found:
        print("test-pythons: found no other CPython from 3.11 on with its headers")
        return bool(arguments.python)
    failed = []
    for minor, (version, program) in sorted(found.items()):
        name = ".".join(map(str, version))
        print(f"test-pythons: {name}, {program}", flush=True)
        if not test(arguments.build.resolve(), f"python3.{minor}", program):
            failed.append(name)
    print("test-pythons:", f"failed: {', '.join(failed)}" if failed else "all passed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
