"""Marks for NVIDIA's profilers. They have no effect: the library for them is not loaded."""
import contextlib


def range_push(msg):
    return 0


def range_pop():
    return 0


def mark(msg):
    pass


@contextlib.contextmanager
def range(msg, *args, **kwargs):
    yield
