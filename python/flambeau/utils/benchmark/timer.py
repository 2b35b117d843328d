"""Times of statements, in seconds for one run."""
import statistics
import timeit
from dataclasses import dataclass, field

from ... import _C

__all__ = ["Measurement", "Timer"]


def unit_of(seconds):
    """The unit that a time is shown in, and its seconds."""
    for name, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return name, size
    return "ns", 1e-9


@dataclass
class Measurement:
    """Times of one statement: raw_times are of number_per_run runs each."""

    number_per_run: int
    raw_times: list
    label: str
    sub_label: str = None
    description: str = None
    env: str = None
    num_threads: int = 1
    metadata: dict = field(default_factory=dict)

    @property
    def times(self):
        """Seconds of one run, as often as it was measured."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self):
        return statistics.fmean(self.times)

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def iqr(self):
        """Between the first and the third quartile."""
        if len(self.times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    @property
    def title(self):
        return f"{self.label}: {self.sub_label}" if self.sub_label else self.label

    def __repr__(self):
        unit, size = unit_of(self.median)
        lines = [self.title] + ([self.description] if self.description else [])
        lines.append(f"  Median: {self.median / size:.2f} {unit}")
        if len(self.times) > 1:
            lines.append(f"  IQR:    {self.iqr / size:.2f} {unit}")
        lines.append(f"  {len(self.times)} measurements, {self.number_per_run} runs per measurement, "
                     f"{self.num_threads} threads")
        return "\n".join(lines)


class Timer:
    """A statement as text, run with these globals after setup, with num_threads threads in operators."""

    def __init__(self, stmt="pass", setup="pass", global_setup="", timer=timeit.default_timer, globals=None,
                 label=None, sub_label=None, description=None, env=None, num_threads=1, language="python"):
        if str(language).lower() not in ("python", "py"):
            raise NotImplementedError(f"Timer: statements in {language} are not supported, only in Python")
        if global_setup:
            raise NotImplementedError("Timer: global_setup is for statements in C++, which are not supported")
        self._timer = timeit.Timer(stmt, setup, timer, dict(globals or {}))
        self._task = {"label": label or stmt, "sub_label": sub_label, "description": description, "env": env,
                      "num_threads": num_threads}

    def _run(self, number):
        before = _C.get_num_threads()
        _C.set_num_threads(self._task["num_threads"])
        try:
            return max(self._timer.timeit(number), 1e-9)
        finally:
            _C.set_num_threads(before)

    def _measured(self, number, times):
        return Measurement(number, times, **self._task)

    def timeit(self, number=1_000_000):
        """One measurement of so many runs, after a few to warm up."""
        self._run(max(number // 100, 2))
        return self._measured(number, [self._run(number)])

    def _runs_at_once(self, seconds):
        """A number of runs that takes so long, so that the clock's own time does not count."""
        number = 1
        while (time := self._run(number)) < seconds:
            number = max(number + 1, min(number * 10, int(number * seconds / time) + 1))
        return number

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Measurements of equally many runs, until they have taken min_run_time seconds."""
        number = self._runs_at_once(min_run_time / 1000)
        times, spent = [], 0.0
        while spent < min_run_time:
            times.append(self._run(number))
            spent += times[-1]
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Measurements until their quartiles are nearer than threshold * median, or max_run_time is over."""
        number, times, spent = self._runs_at_once(min_run_time / 100), [], 0.0
        while spent < max_run_time:
            times.append(self._run(number))
            spent += times[-1]
            if callback is not None:
                callback(number, times[-1])
            now = self._measured(number, times)
            if spent >= min_run_time and len(times) > 3 and now.iqr < threshold * now.median:
                break
        return self._measured(number, times)

    autorange = blocked_autorange
