"""Random programs in numbers, in chunks of a process each; a failure names the seed that shows it again.

    python3 tools/fuzz.py build operators --count 100000     # eager = compiled by every backend, interpreter
    included python3 tools/fuzz.py build loops --count 100000         # machine code of every instruction set
    = interpreter
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

KINDS = {"operators": ("test_compile", "CompileFuzz.*"), "loops": ("test_codegen", "Fuzz.*")}


def run(build, kind, seed, count, cache):
    """One process: its exit status (negative: a signal) and what it printed."""
    program, tests = KINDS[kind]
    environment = dict(os.environ, FLAMBEAU_FUZZ_SEED=str(seed), FLAMBEAU_FUZZ_COUNT=str(count),
                       FLAMBEAU_CACHE_DIR=cache)
    environment.setdefault("OMP_NUM_THREADS", "1")
    done = subprocess.run([build / "tests" / program, f"--gtest_filter={tests}"], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def first_crash(build, kind, seed, count, cache):
    """The seed among `count` at which a process dies: by halves."""
    while count > 1:
        half = count // 2
        if run(build, kind, seed, half, cache)[0] < 0:
            count = half
        else:
            seed, count = seed + half, count - half
    return seed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build folder")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1,
                        help="of the first program; the next has the next seed")
    parser.add_argument("--chunk", type=int, default=500, help="programs a process")
    parser.add_argument("--until", type=float, default=float("inf"),
                        help="seconds after which no chunk begins")
    arguments = parser.parse_args()

    begin, done, failed = time.monotonic(), 0, []
    while done < arguments.count and time.monotonic() - begin < arguments.until:
        seed, count = arguments.seed + done, min(arguments.chunk, arguments.count - done)
        with tempfile.TemporaryDirectory(prefix="flambeau-fuzz-") as cache:
            status, text = run(arguments.build, arguments.kind, seed, count, cache)
            if status < 0:
                died = first_crash(arguments.build, arguments.kind, seed, count, cache)
                text += f"\nseed {died}: the process dies by signal {-status}\n"
                count = died - seed + 1  # what follows is the next chunk's
        done += count
        if status:
            print(text)
            failed += re.findall(r"^seed (\d+)", text, re.MULTILINE) or [f"{seed} to {seed + count - 1}"]
        print(f"{arguments.kind}: {done} programs, {len(failed)} failed, {time.monotonic() - begin:.0f} s",
              flush=True)
    if failed:
        print("failed seeds:", ", ".join(failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
