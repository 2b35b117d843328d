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
    pass


def synchronize(device=None):
    """Nothing to wait for."""


class Stream:
    """Everything runs at once: a stream orders nothing."""

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
