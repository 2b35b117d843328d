"""The device beside the CPU that a program may use: a CUDA device, or none."""
from .. import _C
from . import _absent

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "current_stream",
           "device_count",
           "device_index", "empty_cache", "get_memory_info", "is_available", "max_memory_allocated",
           "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
           "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx", "set_device_index",
           "set_stream", "synchronize"]


def _cuda():
    from .. import cuda
    return cuda


def is_available():
    return _cuda().is_available()


def device_count():
    return _cuda().device_count()


def current_accelerator(check_available=False):
    """The kind of device, None where there is none."""
    return _C.device("cuda") if is_available() else None


def _of_cuda(name, otherwise, theirs=None):
    """cuda's function, or what happens where there is no device."""
    def function(*args, **kwargs):
        return (getattr(_cuda(), theirs or name) if is_available() else otherwise)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"cuda.{theirs or name}() where there is a CUDA device."
    return function


_refuse = _absent.refusal(RuntimeError, "there is no accelerator: Flambeau found no CUDA device")
current_device_index = current_device_idx = _of_cuda("current_device_index", _refuse, "current_device")
set_device_index = set_device_idx = _of_cuda("set_device_index", _refuse, "set_device")
current_stream, set_stream = _of_cuda("current_stream", _refuse), _of_cuda("set_stream", _refuse)
device_index = _of_cuda("device_index", _refuse, "device")
get_memory_info = _of_cuda("get_memory_info", _refuse, "mem_get_info")
synchronize = _of_cuda("synchronize", _absent.nothing)
empty_cache = _of_cuda("empty_cache", _absent.nothing)
memory_stats = _of_cuda("memory_stats", _absent.memory_stats)
memory_allocated = _of_cuda("memory_allocated", _absent.zero)
memory_reserved = _of_cuda("memory_reserved", _absent.zero)
max_memory_allocated = _of_cuda("max_memory_allocated", _absent.zero)
max_memory_reserved = _of_cuda("max_memory_reserved", _absent.zero)
reset_peak_memory_stats = _of_cuda("reset_peak_memory_stats", _absent.nothing)
reset_accumulated_memory_stats = _of_cuda("reset_accumulated_memory_stats", _absent.nothing)
