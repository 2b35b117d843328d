"""The CPU, in the form that PyTorch gives to all devices."""
import contextlib

from . import amp


def is_available():
    return True


def is_initialized():
    return True


def device_count():
    return 1


def current_device():
    return "cpu"


def set_device(device):
    """Has no effect: there is one CPU."""


def synchronize(device=None):
    """Has no effect: operators are done when their call returns."""


class Stream:
    """Operators are done when their call returns: a stream orders nothing, and its methods have no effect."""

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        pass

    def record_event(self):
        return Event()

    def wait_event(self, event):
        pass

    def synchronize(self):
        pass


class Event:
    """A point that is always reached: its methods have no effect."""

    def query(self):
        return True

    def record(self, stream=None):
        pass

    def synchronize(self):
        pass

    def wait(self, stream=None):
        pass


def current_stream(device=None):
    return Stream()


def stream(stream):
    return contextlib.nullcontext()


StreamContext = contextlib.nullcontext
