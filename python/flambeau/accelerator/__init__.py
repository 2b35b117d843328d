"""The device beside the CPU that a program may use: there is none."""
from ._absent import (device_count, empty_cache, is_available, memory_stats, nothing, refusal, synchronize,
                      zero)

__all__ = ["current_accelerator", "current_device_index", "current_stream", "device_count", "is_available",
           "synchronize"]


def current_accelerator(check_available=False):
    return None


_refuse = refusal(RuntimeError, "there is no accelerator: Flambeau's eager mode runs on the CPU")
current_device_index = current_device_idx = set_device_index = set_device_idx = _refuse
current_stream = set_stream = device_index = get_memory_info = _refuse
memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = zero
reset_peak_memory_stats = nothing
