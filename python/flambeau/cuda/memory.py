"""Memory of CUDA devices.

Blocks that tensors gave back are kept for the next ones; bytes count whole blocks.
"""
from collections import OrderedDict

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


_POOLS = ("all", "small_pool", "large_pool")
_NOTHING = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}


def memory_stats_as_nested_dict(device=None):
    """The figures of memory_stats(), by name, pool and kind; {} without a device."""
    if not is_available():
        return {}
    figures = _cuda.memory_figures(index_of(device))
    out = {name: {pool: dict(_NOTHING) for pool in _POOLS} for name in
           ("active", "active_bytes", "allocated_bytes", "allocation", "inactive_split", "inactive_split_bytes",
            "requested_bytes", "reserved_bytes", "segment")}
    for pool in _POOLS:
        for name, value in figures[pool].items():
            out[name][pool] = value if isinstance(value, dict) else {**_NOTHING, "current": value}
        # A block is given out with what it was rounded to.
        out["active"][pool], out["active_bytes"][pool] = out["allocation"][pool], out["allocated_bytes"][pool]
        out["requested_bytes"][pool] = out["allocated_bytes"][pool]
    out.update(num_alloc_retries=figures["num_alloc_retries"], num_ooms=figures["num_ooms"],
               num_device_alloc=figures["all"]["segment"]["allocated"],
               num_device_free=figures["all"]["segment"]["freed"], num_sync_all_streams=0, max_split_size=-1,
               oversize_allocations=dict(_NOTHING), oversize_segments=dict(_NOTHING))
    return out


def memory_stats(device=None):
    """Figures as "allocated_bytes.all.current": {what}.{all, small_pool, large_pool}.{current, peak, allocated,
    freed}, and counts such as num_ooms. Small blocks are those up to 1 MiB.
    """
    flat = {}

    def visit(prefix, value):
        if not isinstance(value, dict):
            flat[prefix] = value
            return
        for key, inner in value.items():
            visit(f"{prefix}.{key}" if prefix else key, inner)

    visit("", memory_stats_as_nested_dict(device))
    return OrderedDict(sorted(flat.items()))


def _size(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 10 * 1024 or unit == "GiB":
            return f"{count} {unit}"
        count //= 1024


def memory_summary(device=None, abbreviated=False):
    """The figures of memory_stats() as a table; abbreviated: without pools."""
    index = index_of(device)
    stats = memory_stats(index)
    row = "| {:24} | {:>12} | {:>12} | {:>12} | {:>12} |".format
    line = "|" + "-" * 82 + "|"
    text = [line, f"| CUDA memory, device {index}; failed allocations: {stats['num_ooms']}; allocations after kept "
            f"memory was given back: {stats['num_alloc_retries']}", line,
            row("", "now", "at most", "in all", "freed"), line]
    for title, name, show in (("memory in tensors", "allocated_bytes", _size), ("reserved", "reserved_bytes", _size),
                              ("blocks in tensors", "allocation", str), ("segments", "segment", str)):
        for pool in _POOLS[:1] if abbreviated else _POOLS:
            values = [show(stats[f"{name}.{pool}.{kind}"]) for kind in _NOTHING]
            text.append(row(title if pool == "all" else f"  {pool.replace('_', ' ')}", *values))
        text.append(line)
    return "\n".join(text)


def memory_snapshot(*args, **kwargs):
    """[]: there is no record of single blocks; memory_stats() has sums."""
    return []


_snapshot = memory_snapshot


def reset_peak_memory_stats(device=None):
    if is_available():
        _cuda.reset_peak(index_of(device))


def reset_accumulated_memory_stats(device=None):
    """Sums of what was allocated and freed begin at 0 again."""
    if is_available():
        _cuda.reset_accumulated(index_of(device))


def host_memory_stats():
    """Empty: page-locked memory is not counted."""
    return OrderedDict()


def get_allocator_backend():
    return "native"


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def empty_cache():
    """Gives kept memory of all devices back."""
    for index in range(device_count()):
        _cuda.empty_cache(index)


def mem_get_info(device=None):
    """(free, all) bytes of the device, as the driver sees them."""
    return _cuda.memory_info(index_of(device))


_fractions = {}


def set_per_process_memory_fraction(fraction, device=None):
    """Of the device's memory no more than this part is taken; what needs more raises OutOfMemoryError."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`, got "
                        f"{type(fraction).__name__}")
    if not 0 < fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: above 0, up to 1")
    _cuda.set_memory_fraction(index_of(device), fraction)
    _fractions[index_of(device)] = fraction


def get_per_process_memory_fraction(device=None):
    return _fractions.get(index_of(device), 1.0)


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
