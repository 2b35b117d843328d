"""Runs the benchmarks, beside PyTorch's where there is one, and prints a table with ratios.

Usage: bench_table.py [--build build] [--peer PYTHON] [--rounds 3] [--json FILE] [NAME...]

A benchmark program prints lines {"name", "eager_ms", "compile_ms", "first_s"} (null: not measured). Its
arguments are names; it runs those that it has, or all without arguments. The library's programs are the
executables bench_* in BUILD/benchmarks; PyTorch's are benchmarks/peer/*.py except measure.py. These run on
this library too, as `python -m flambeau X.py`: rows "NAME (Python)". Each round runs every program once,
bench_X just before X.py; the table holds the medians over the rounds. A program without such lines runs once,
and what it prints is shown. OMP_NUM_THREADS is the number of processors if not set.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from source_files import ROOT

FIELDS = ("eager_ms", "compile_ms", "first_s")
# What to reach: ours (the better of eager and compiled) over PyTorch's torch.compile ("compile") or the
# better one of its two ("better"); or a time of ours alone, in ms ("ms"). "first": seconds of the first
# compiled call.
GOALS = {
    "pointwise_chain": {"compile": 0.5},
    "layernorm_residual": {"better": 0.8},
    "softmax": {"better": 0.8},
    "col_sum": {"better": 0.8},
    "matmul_bias_gelu": {"better": 0.8},
    "gpt_small_train": {"better": 0.75, "first": 0.5},
    "resnet18_train": {"better": 0.85, "first": 1.0},
    "compiled_call": {"ms": 0.5e-3},
    "eager_add": {"ms": 0.4e-3},
    "python_call (Python)": {"ms": 2e-3},
    "gpt_small_train (Python)": {"better": 0.8, "first": 0.6},
    "resnet18_train (Python)": {"better": 0.8, "first": 1.2},
    "resnet50_train (Python)": {"better": 0.8, "first": 2.5},
    "vit_small_train (Python)": {"better": 0.8},
    "bert_train (Python)": {"better": 0.8, "first": 2.0},
}


def python_of_module(build, peer):
    """The interpreter for the programs on this library: PyTorch's, which may have collections of models, or
    this one.
    """
    environment = {**os.environ, "PYTHONPATH": str(build / "python")}
    for python in filter(None, (peer, sys.executable)):
        if not subprocess.run([python, "-c", "import flambeau._C"], env=environment,
                              capture_output=True).returncode:
            return python
    print("bench: no Python module for this interpreter or PyTorch's: no rows of Python", file=sys.stderr)
    return None


def programs(build, peer):
    """[(side, command)] of one round."""
    ours = {path.name.removeprefix("bench_"): [str(path)] for path in (build / "benchmarks").glob("bench_*")
            if path.is_file() and os.access(path, os.X_OK)}
    scripts = {path.stem: str(path) for path in (ROOT / "benchmarks/peer").glob("*.py")
               if path.stem != "measure"}
    theirs = {stem: [peer, path] for stem, path in scripts.items() if peer}
    python = python_of_module(build, peer)
    here = {stem: [python, "-m", "flambeau", path] for stem, path in scripts.items() if python}
    order = sorted(ours.keys() | theirs.keys() | here.keys())
    tables = (("ours", ours), ("python", here), ("peer", theirs))
    return [(side, table[stem]) for stem in order for side, table in tables if stem in table]


def run(command, names, path=None):
    """What a program prints: (JSON lines as dictionaries, other lines)."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if path:
        environment["PYTHONPATH"] = str(path)
    environment.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    print(f"bench: {' '.join(command)}", file=sys.stderr, flush=True)
    done = subprocess.run([*command, *names], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"bench: {command[-1]} failed with status {done.returncode}:\n{done.stderr[-2000:]}",
              file=sys.stderr)
    lines = done.stdout.splitlines()
    measured = [json.loads(line) for line in lines if line.startswith("{")]
    return measured, [line for line in lines if not line.startswith("{")]


def run_rounds(commands, names, rounds, path):
    """{side: JSON lines} of all rounds."""
    found = {"ours": [], "python": [], "peer": []}
    for round_number in range(rounds):
        repeated = []
        for side, command in commands:
            lines, other = run(command, names, path if side == "python" else None)
            found[side] += lines
            if round_number == 0 and other:
                print("\n".join(other), flush=True)
            if lines:
                repeated.append((side, command))
        commands = repeated
    return found


def medians(lines):
    """{name: {field: median or None}} of all lines of one side."""
    table = {}
    for line in lines:
        table.setdefault(line["name"], []).append(line)

    def median(entries, field):
        values = [entry[field] for entry in entries if entry.get(field) is not None]
        return statistics.median(values) if values else None
    return {name: {field: median(entries, field) for field in FIELDS} for name, entries in table.items()}


def smallest(entry, *fields):
    return min((entry[field] for field in fields if entry and entry[field] is not None), default=None)


def verdict(name, ours, peer):
    """(text of the ratio, text of the goal) of one row."""
    best, goal = smallest(ours, "eager_ms", "compile_ms"), GOALS.get(name, {})
    base = smallest(peer, "compile_ms") if "compile" in goal else smallest(peer, "eager_ms", "compile_ms")
    ratio = best / base if best and base else None
    checks = []
    for kind, limit in goal.items():
        value = {"ms": best, "first": ours and ours["first_s"]}.get(kind, ratio)
        text = {"ms": f"{1e3 * limit:g} us", "first": f"first {limit:g} s"}.get(kind, f"{limit:g} of {kind}")
        checks.append(f"{text}: {'not measured' if value is None else 'reached' if value <= limit else 'MISSED'}")
    return ("" if ratio is None else f"{ratio:.2f}"), ", ".join(checks)


def shown(value):
    """Milliseconds or seconds with three significant digits."""
    return "" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table_rows(ours, peer):
    header = ["benchmark", "torch eager ms", "torch.compile ms", "torch first s", "eager ms", "compiled ms",
              "first s", "ratio", "goal"]
    rows = [header]
    names = [*GOALS, *sorted((ours.keys() | peer.keys()) - GOALS.keys())]
    for name in names:
        if name in ours or name in peer:
            figures = [shown(side.get(name, {}).get(field)) for side in (peer, ours) for field in FIELDS]
            rows.append([name, *figures, *verdict(name, ours.get(name), peer.get(name))])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--peer", help="a Python with PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="write all lines here as well")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    lines = run_rounds(programs(options.build, options.peer), options.names, options.rounds,
                       options.build / "python")
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1) + "\n")
    if not options.peer:
        print("bench: no PyTorch to compare with: make peer installs one, PEER_PYTHON=... names one",
              file=sys.stderr)
    ours, peer = medians(lines["ours"]), medians(lines["peer"])
    for name, entry in medians(lines["python"]).items():
        ours[f"{name} (Python)"] = entry
        if name in peer:
            peer[f"{name} (Python)"] = peer[name]
    rows = table_rows(ours, peer)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in [rows[0], ["-" * width for width in widths], *rows[1:]]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")


if __name__ == "__main__":
    main()
