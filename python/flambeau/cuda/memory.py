"""Memory of CUDA devices. Blocks that tensors gave back are kept for the next ones; bytes count whole blocks."""
from .. import _C
from ._devices import device_count, index_of, is_available

_cuda = _C._cuda
OutOfMemoryError = _C.OutOfMemoryError


def _figure(name, device):
    return _cuda.memory(index_of(device))[name] if is_available() else 0


def memory_allocated(device=None):
    """Bytes in tensors."""
    return _figure("allocated", device)


def max_memory_allocated(device=None):
    """The most that memory_allocated() was since reset_peak_memory_stats()."""
    return _figure("peak_allocated", device)


def memory_reserved(device=None):
    """Bytes taken from the device, those kept for later included."""
    return _figure("reserved", device)


def max_memory_reserved(device=None):
    return _figure("peak_reserved", device)


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def memory_stats(device=None):
    if not is_available():
        return {}
    m = _cuda.memory(index_of(device))
    return {"allocated_bytes.all.current": m["allocated"], "allocated_bytes.all.peak": m["peak_allocated"],
            "reserved_bytes.all.current": m["reserved"], "reserved_bytes.all.peak": m["peak_reserved"],
            "allocation.all.allocated": m["allocations"]}


def memory_summary(device=None, abbreviated=False):
    return "\n".join(f"{name:32} {value:>16,}" for name, value in memory_stats(device).items())


def memory_snapshot():
    raise NotImplementedError("torch.cuda.memory_snapshot(): single blocks are not recorded; memory_stats() has sums")


def reset_peak_memory_stats(device=None):
    if is_available():
        _cuda.reset_peak(index_of(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


def empty_cache():
    """Gives kept memory of all devices back."""
    for index in range(device_count()):
        _cuda.empty_cache(index)


def mem_get_info(device=None):
    """(free, all) bytes of the device, as the driver sees them."""
    return _cuda.memory_info(index_of(device))


def set_per_process_memory_fraction(fraction, device=None):
    """Of the device's memory no more than this part is taken; what needs more raises OutOfMemoryError."""
    if not isinstance(fraction, float):
        raise TypeError(f"Invalid type for fraction argument, must be `float`, got {type(fraction).__name__}")
    _cuda.set_memory_fraction(index_of(device), fraction)


_owned = {}


def caching_allocator_alloc(size, device=None, stream=None):
    """The address of a block of `size` bytes, to be given back by caching_allocator_delete()."""
    block = _C.empty(size, dtype=_C.uint8, device=_C.device("cuda", index_of(device)))
    _owned[block.data_ptr()] = block
    return block.data_ptr()


def caching_allocator_delete(mem_ptr):
    del _owned[mem_ptr]


def _record_memory_history(*args, **kwargs):
    """Has no effect: there is no history of single blocks."""
