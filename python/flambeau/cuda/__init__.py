"""CUDA, as programs ask for it: not available in eager mode. Queries answer so, work raises an error."""
import contextlib
from types import SimpleNamespace

from ..accelerator._absent import (device_count, empty_cache, is_available, is_bf16_supported,
                                   is_initialized, manual_seed, manual_seed_all, memory_stats, nothing,
                                   refusal, synchronize, zero)
from . import amp

has_half = has_magma = False
default_generators = ()
_NOT_HERE = "Torch not compiled with CUDA enabled: Flambeau's eager mode runs on the CPU"


def is_tf32_supported():
    return False


def _lazy_call(callable, **options):
    """Calls that wait for CUDA wait for ever."""


def _is_compiled():
    return False


_no_work = init = _lazy_init = refusal(AssertionError, _NOT_HERE)
current_device = get_device_name = get_device_capability = get_device_properties = set_device = _no_work
current_stream = default_stream = set_stream = mem_get_info = get_rng_state = get_rng_state_all = _no_work
utilization = memory_usage = temperature = power_draw = clock_rate = can_device_access_peer = _no_work
cudart = current_blas_handle = graph = make_graphed_callables = _no_work

ipc_collect = seed = seed_all = nothing
reset_peak_memory_stats = reset_max_memory_allocated = reset_max_memory_cached = set_rng_state = nothing
set_rng_state_all = reset_accumulated_memory_stats = set_per_process_memory_fraction = nothing

memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = memory_cached = zero
max_memory_cached = initial_seed = zero


def memory_summary(device=None, abbreviated=False):
    return ""


def memory_snapshot():
    return []


def get_arch_list():
    return []


def get_gencode_flags():
    return ""


def get_sync_debug_mode():
    return 0


set_sync_debug_mode = nothing


def is_current_stream_capturing():
    return False


class device(contextlib.nullcontext):
    """A scope that changes nothing: there is no device to choose."""

    def __init__(self, device):
        super().__init__()
        self.idx = device


device_of = device


class _NotHere:
    def __init__(self, *args, **kwargs):
        raise AssertionError(_NOT_HERE)


class Stream(_NotHere):
    pass


class Event(_NotHere):
    pass


class ExternalStream(_NotHere):
    pass


class CUDAGraph(_NotHere):
    pass


class OutOfMemoryError(RuntimeError):
    """Never raised."""


class StreamContext(contextlib.nullcontext):
    def __init__(self, stream):
        super().__init__()


def stream(stream):
    """A scope; only None can be a stream here."""
    return StreamContext(stream)


nvtx = SimpleNamespace(range_push=nothing, range_pop=nothing, mark=nothing,
                       range=lambda *a, **k: contextlib.nullcontext())
memory = SimpleNamespace(**{n: globals()[n] for n in (
    "empty_cache", "memory_allocated", "max_memory_allocated", "memory_reserved", "memory_stats",
    "memory_summary", "memory_snapshot", "mem_get_info", "reset_peak_memory_stats")},
    _record_memory_history=nothing)
random = SimpleNamespace(**{n: globals()[n] for n in (
    "get_rng_state", "set_rng_state", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "initial_seed")})

for _type in ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool"):
    globals()[f"{_type}Tensor"] = type(f"{_type}Tensor", (_NotHere,), {"__doc__": "No tensor is one."})
