"""Compares what the programs do, uncompiled, in two libraries.

    python record.py OUT.json [PATTERN ...]    with FLAMBEAU_PROGRAMS_LIB=torch for PyTorch
    python record.py --compare A.json B.json

The texts of a library's errors and warnings may differ, and programs that draw random numbers are left out.
"""
import json
import re
import sys

from compilers import identity
from observe import line_differences, random_states, run, seed
from program import files, load, names

DRAWS = {"data_dependent.own_generator"}
OWN = re.compile(r"random_state|(error|__context__|__cause__|result|\]|results.*)\.args|^warned")


def record(out, words):
    seed()
    untouched = f"float {random_states()[0]!r}"
    found = {}
    for path in files():
        for name in names(path):
            if not words or any(word in f"{path.stem}.{name}" for word in words):
                steps = run(load(path, name), identity)
                drew = any(
                    text != untouched for _, lines in steps for at, text in lines if at == "random_state[0]"
                )
                if not drew and f"{path.stem}.{name}" not in DRAWS:
                    found[f"{path.stem}.{name}"] = steps
    with open(out, "w") as file:
        json.dump(found, file)


def compare(a, b):
    bad = 0
    for name in a:
        for (step, lines), (_, others) in zip(a[name], b.get(name, [])):
            lines, others = (
                [tuple(line) for line in part if not OWN.search(line[0])] for part in (lines, others)
            )
            if texts := list(line_differences(lines, others, 1e-5)):
                bad += 1
                print(f"{name}, {step}: {texts[0]}")
                break
    print(f"{len(a)} programs, {bad} differ, {len(set(a) ^ set(b))} are only in one")
    return bad


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        sys.exit(bool(compare(*(json.load(open(path)) for path in sys.argv[2:4]))))
    record(sys.argv[1], sys.argv[2:])
