"""The device beside the CPU that a program may use: there is none."""
__all__ = ["current_accelerator", "current_device_index", "current_stream", "device_count", "is_available", "synchronize"]


def is_available():
    return False


def current_accelerator(check_available=False):
    return None


def device_count():
    return 0


def _refuse(*args, **kwargs):
    raise RuntimeError("there is no accelerator: Flambeau's eager mode runs on the CPU")


current_device_index = current_device_idx = set_device_index = set_device_idx = current_stream = set_stream = _refuse
device_index = get_memory_info = _refuse


def synchronize(device=None):
    """Nothing to wait for."""


def empty_cache():
    """Nothing to empty."""


def _zero(device=None):
    return 0


memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = _zero


def memory_stats(device=None):
    return {}


def reset_peak_memory_stats(device=None):
    """Nothing is counted."""
