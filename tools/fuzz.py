"""Random programs in numbers, in chunks of a process each; a failure names the seed that shows it again.

    python3 tools/fuzz.py build operators --count 100000    # eager = compiled by every backend
    python3 tools/fuzz.py build loops --count 100000        # machine code = interpreter

A folder of tools/gpu_bundle.sh does in the build folder's place:

    FOLDER/run python3 FOLDER/fuzz.py FOLDER loops --seed 30000 --count 70000 --jobs 16 --until 500
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

KINDS = {"operators": ("test_compile", "CompileFuzz.*"), "loops": ("test_codegen", "Fuzz.*")}


def program_in(folder, name):
    """The test program, of a build folder or of a bundle."""
    for place in (folder / "tests" / name, folder / "bin" / name):
        if place.exists():
            return place
    sys.exit(f"expected a program {name} in {folder}/tests or {folder}/bin, found none: build its target")


class Runner:
    """Runs chunks of one kind's programs."""

    def __init__(self, folder, kind, patience):
        name, tests = KINDS[kind]
        self.command = [program_in(folder, name), f"--gtest_filter={tests}"]
        self.patience = patience

    def process(self, seed, count, cache):
        """One process: its exit status (negative: a signal; None: it does not end) and what it printed."""
        environment = dict(os.environ, FLAMBEAU_FUZZ_SEED=str(seed), FLAMBEAU_FUZZ_COUNT=str(count),
                           FLAMBEAU_CACHE_DIR=cache)
        environment.setdefault("OMP_NUM_THREADS", "1")
        try:
            done = subprocess.run(self.command, env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=self.patience * (20 + count))
        except subprocess.TimeoutExpired as expired:
            return None, (expired.stdout or b"").decode(errors="replace")
        return done.returncode, done.stdout

    def first_death(self, seed, count, cache):
        """The seed among `count` at which a process dies or does not end: by halves."""
        while count > 1:
            half = count // 2
            status = self.process(seed, half, cache)[0]
            if status is None or status < 0:
                count = half
            else:
                seed, count = seed + half, count - half
        return seed

    def chunk(self, seed, count):
        """Programs that ran, the seeds of those that failed, and what is to be said of them."""
        programs, failed, texts = 0, [], []
        while count:
            with tempfile.TemporaryDirectory(prefix="flambeau-fuzz-") as cache:
                status, text = self.process(seed, count, cache)
                if status is None or status < 0:
                    died = self.first_death(seed, count, cache)
                    how = "does not end" if status is None else f"dies by signal {-status}"
                    text += f"\nseed {died}: the process {how}\n"
                    ran = died - seed + 1
                else:  # fewer than asked for: it stops behind many failures
                    said = re.search(r"^(\d+) programs", text, re.MULTILINE)
                    ran = int(said[1]) if said else count
            programs += ran
            if status != 0:
                texts.append(text)
                failed += re.findall(r"^seed (\d+)", text, re.MULTILINE) or [f"{seed} to {seed + ran - 1}"]
            seed, count = seed + ran, count - ran
        return programs, failed, "\n".join(texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="build folder, or a bundle")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1,
                        help="of the first program; the next has the next seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--chunk", type=int, default=100, help="programs a process")
    parser.add_argument("--until", type=float, default=float("inf"),
                        help="seconds after which no chunk begins")
    parser.add_argument("--patience", type=float, default=5,
                        help="seconds a program after which a process counts as one that does not end")
    arguments = parser.parse_args()

    runner = Runner(arguments.folder, arguments.kind, arguments.patience)
    begin, done, failed, lock = time.monotonic(), 0, [], threading.Lock()
    end = arguments.seed + arguments.count
    starts = iter(range(arguments.seed, end, arguments.chunk))

    def work():
        nonlocal done, failed
        while True:
            with lock:
                seed = next(starts, None) if time.monotonic() - begin < arguments.until else None
            if seed is None:
                return
            programs, seeds, text = runner.chunk(seed, min(arguments.chunk, end - seed))
            with lock:
                done, failed = done + programs, failed + seeds
                if text:
                    print(text)
                print(f"{arguments.kind}: {done} programs, {len(failed)} failed, "
                      f"seeds up to {seed + programs - 1}, {time.monotonic() - begin:.0f} s", flush=True)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for worker in [pool.submit(work) for _ in range(arguments.jobs)]:
            worker.result()
    behind = next(starts, end)
    print(f"{arguments.kind}: seeds {arguments.seed} to {behind - 1}: {done - len(failed)} passed, "
          f"{len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
