"""Times of a program's parts: record_function() marks them, profile() collects them. Operators are not
recorded, and memory and shapes neither.
"""
import contextlib
import json
import threading
import time
from collections import defaultdict
from enum import Enum

__all__ = ["ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule",
           "supported_activities", "tensorboard_trace_handler"]


class ProfilerActivity(Enum):
    CPU, CUDA, XPU = 0, 2, 3


class ProfilerAction(Enum):
    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


_current = None


class record_function(contextlib.ContextDecorator):
    """A part of the program, under a name, while a profile() runs."""

    def __init__(self, name, args=None):
        self.name = name

    def __enter__(self):
        self._start = time.perf_counter_ns()
        return self

    def __exit__(self, *error):
        if _current is not None:
            _current._events.append((self.name, threading.get_ident(), self._start, time.perf_counter_ns()))


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A function from the step's number to what the profiler does in it."""
    def action(step):
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat and step >= repeat * length:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class _Average:
    def __init__(self, key, times):
        self.key, self.count = key, len(times)
        self.cpu_time_total = self.self_cpu_time_total = sum(times) / 1000
        self.cpu_time = self.cpu_time_total / max(1, self.count)


class _Averages(list):
    def table(self, sort_by=None, row_limit=100, **options):
        rows = sorted(self, key=lambda a: getattr(a, sort_by or "cpu_time_total", 0), reverse=True)
        return "\n".join([f"{'Name':40}  {'Calls':>8}  {'Total us':>12}"] +
                         [f"{a.key:40.40}  {a.count:8}  {a.cpu_time_total:12.1f}" for a in rows[:row_limit]])

    __str__ = table


class profile:
    """A context manager: collects what record_function() marks. step() between iterations, with a schedule.

    Options beside schedule and on_trace_ready have no effect.
    """

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, **options):
        self._schedule, self._ready, self.step_num = schedule, on_trace_ready, 0
        self._events, self._metadata = [], {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def _action(self):
        return self._schedule(self.step_num) if self._schedule else ProfilerAction.RECORD

    def start(self):
        global _current
        _current = self if self._action() in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE) else None

    def stop(self):
        global _current
        if _current is self:
            _current = None
            if self._ready is not None:
                self._ready(self)

    def step(self):
        if self._action() is ProfilerAction.RECORD_AND_SAVE:
            self.stop()
        self.step_num += 1
        self.start()

    def key_averages(self, *args, **options):
        times = defaultdict(list)
        for name, _, start, end in self._events:
            times[name].append(end - start)
        return _Averages(_Average(*item) for item in times.items())

    def events(self):
        return list(self._events)

    def export_chrome_trace(self, path):
        """A file for chrome://tracing or Perfetto."""
        events = [dict(name=name, ph="X", pid=0, tid=thread, ts=start / 1000, dur=(end - start) / 1000)
                  for name, thread, start, end in self._events]
        with open(path, "w") as file:
            json.dump({**self._metadata, "traceEvents": events}, file)

    def add_metadata(self, key, value):
        """An entry of the file that export_chrome_trace() writes."""
        self._metadata[key] = value


def kineto_available():
    return False


def supported_activities():
    return {ProfilerActivity.CPU}


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """A function for on_trace_ready that writes a trace into a folder."""
    import os

    def write(profiler):
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or 'worker'}.{time.time_ns()}.pt.trace.json"
        profiler.export_chrome_trace(os.path.join(dir_name, name))

    return write
