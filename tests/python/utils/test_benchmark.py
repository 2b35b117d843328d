"""Timers: how often they run what, and what they say of it. No test depends on how long anything takes."""
import pytest

import flambeau as torch
from flambeau.utils import benchmark


class Clock:
    """A clock that goes on by two microseconds whenever the statement runs."""

    def __init__(self):
        self.now, self.runs = 0.0, 0

    def __call__(self):
        return self.now

    def tick(self):
        self.now += 2e-6
        self.runs += 1


def timer(**options):
    clock = Clock()
    return clock, benchmark.Timer("clock.tick()", globals={"clock": clock}, timer=clock, **options)


def test_times_are_of_one_run():
    clock, t = timer(label="tick", sub_label="once", description="ours")
    m = t.timeit(200)
    assert clock.runs == 202 and m.number_per_run == 200 and m.median == pytest.approx(2e-6) == m.mean
    assert m.iqr == 0 and m.title == "tick: once"
    assert "Median: 2.00 us" in repr(m) and "200 runs per measurement, 1 threads" in repr(m)


def test_measurements_until_the_time_is_over():
    _, t = timer()
    m = t.blocked_autorange(min_run_time=0.01)
    assert sum(m.raw_times) == pytest.approx(0.01, rel=0.1) and m.number_per_run >= 5
    assert len(t.adaptive_autorange(min_run_time=1e-3).times) > 3


def test_number_of_threads_is_for_the_statement_only():
    before, seen = torch.get_num_threads(), []
    t = benchmark.Timer("seen.append(torch.get_num_threads())", num_threads=1,
                        globals={"seen": seen, "torch": torch})
    t.timeit(3)
    assert set(seen) == {1} and torch.get_num_threads() == before


def test_table():
    results = [benchmark.Measurement(1, [time], "add", sub, name) for time, sub, name in
               ((1e-6, "small", "a"), (2e-6, "small", "b"), (3e-3, "large", "a"))]
    table = benchmark.Compare(results)
    table.trim_significant_figures()
    lines = str(table).splitlines()
    assert lines[0] == "[add]" and lines[-1] == "Times are in us."
    assert [cell.strip() for cell in lines[2].split("|")] == ["small (1 threads)", "1", "2"]
    assert [cell.strip() for cell in lines[3].split("|")] == ["large (1 threads)", "3e+03", ""]


def test_refuses():
    with pytest.raises(NotImplementedError, match="only in Python"):
        benchmark.Timer("x", language="c++")


def test_older_names_of_the_profiler():
    profiler = torch.autograd.profiler
    for enabled, count in ((True, 1), (False, 0)):
        with profiler.profile(enabled, record_shapes=True) as p, profiler.emit_nvtx():
            with profiler.record_function("part"):
                pass
        assert len(p.key_averages()) == count
