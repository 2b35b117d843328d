"""The device beside the CPU that a program may use, whatever its kind: CUDA where there is one, else none."""
from .. import _C
from .. import cuda as _cuda
from ..cuda import memory
from ..cuda.memory import (empty_cache, max_memory_allocated, max_memory_reserved, memory_allocated,
                           memory_reserved, memory_stats, reset_accumulated_memory_stats,
                           reset_peak_memory_stats)

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "current_stream",
           "device_count", "device_index", "empty_cache", "get_device_capability", "get_memory_info",
           "is_available", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
           "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx",
           "set_device_index", "set_stream", "synchronize"]


def is_available():
    return _cuda.is_available()


def device_count():
    return _cuda.device_count()


def current_accelerator(check_available=False):
    """torch.device("cuda"), or None without a device."""
    return _C.device("cuda") if is_available() else None


def _check():
    if not is_available():
        raise RuntimeError(f"there is no accelerator: {_C._cuda.why()}")


def _index(device):
    """The number of a device of the accelerator's kind."""
    _check()
    if device is not None and not isinstance(device, int) and _C.device(device).type != "cuda":
        raise ValueError(f"{_C.device(device).type} doesn't match the current accelerator cuda.")
    return _cuda._devices.index_of(device)


def current_device_index():
    _check()
    return _cuda.current_device()


def set_device_index(device):
    _cuda.set_device(_index(device))


current_device_idx, set_device_idx = current_device_index, set_device_index


def current_stream(device=None):
    return _cuda.current_stream(_index(device))


def set_stream(stream):
    """Makes the stream the current one, and its device the current device."""
    _check()
    _cuda.set_device(stream.device)
    _cuda.set_stream(stream)


def synchronize(device=None):
    """Waits for all work on the device."""
    _cuda.synchronize(_index(device))


def get_memory_info(device=None):
    """(free, all) bytes of the device."""
    return _cuda.mem_get_info(_index(device))


def get_device_capability(device=None):
    """{"supported_dtypes": ...}: what tensors of the device can have."""
    _index(device)
    names = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
             "complex64", "complex128")
    return {"supported_dtypes": {getattr(_C, name) for name in names}}


class device_index:
    """with torch.accelerator.device_index(1): that device inside. None changes nothing."""

    def __init__(self, device):
        self.idx = device

    def __enter__(self):
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *error):
        if self.idx is not None:
            set_device_index(self.prev_idx)
        return False
