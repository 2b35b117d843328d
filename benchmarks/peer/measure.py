"""Times a function under PyTorch, eagerly and compiled, and prints one JSON line.

A line is {"name", "eager_ms", "compile_ms", "first_s"}: medians in milliseconds; first_s: the first compiled call, with compilation, from cold
caches. What was not measured is null. The library's own benchmarks print the same lines; tools/bench_table.py joins them.
"""
import json
import os
import statistics
import sys
import tempfile
import time

cold = tempfile.TemporaryDirectory(prefix="inductor-")  # an empty cache, named before torch is imported
os.environ["TORCHINDUCTOR_CACHE_DIR"] = cold.name
import torch
import torch._inductor.config

torch._inductor.config.force_disable_caches = True
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0)))))


def seconds(function, calls=1):
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def repetitions(function, budget_s):
    """How often to call the function: 5 to 200 times, about budget_s seconds in all."""
    function()
    return max(5, min(200, int(budget_s / max(seconds(function), 1e-9))))


def report(name, eager=None, compiled=None, budget_s=2.0, calls=1):
    """Medians of interleaved calls; `calls`: calls a time measurement, for what takes microseconds."""
    first = seconds(compiled) if compiled else None
    functions = [f for f in (eager, compiled) if f]
    rounds = max(repetitions(lambda: [f() for f in functions for _ in range(calls)], budget_s), 5)
    times = [[seconds(f, calls) for f in functions] for _ in range(rounds)]
    medians = {f: 1e3 * statistics.median(column) for f, column in zip(functions, zip(*times))}
    line = {"name": name, "eager_ms": medians.get(eager), "compile_ms": medians.get(compiled), "first_s": first}
    print(json.dumps(line), flush=True)


def run(benchmarks):
    """Runs those benchmarks that the command line names, or all: a dictionary from name to function."""
    for name in benchmarks:
        if name in sys.argv[1:] or len(sys.argv) == 1:
            torch.manual_seed(0)
            benchmarks[name](name)
