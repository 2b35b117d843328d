"""CUDA devices: choosing one, streams and events, memory, random numbers.

Operators on a device's tensors are put into its current stream and run there in order; the host goes on. What
reads elements (item(), cpu(), printing) waits. Without a device is_available() is False and the rest raises an
error that says why.
"""
from .. import _C
from .._tensor import TYPE_NAMES as _TYPE_NAMES
from .._types import _typed_class as _typed_tensor
from ..storage import _typed_class as _typed_storage
from . import amp, graphs, memory, nvtx, random, streams
from ._devices import (DeviceProperties as _CudaDeviceProperties, can_device_access_peer, current_device,
                       device, device_count, device_of, get_arch_list, get_device_capability, get_device_name,
                       get_device_properties, get_gencode_flags, init, is_available, is_bf16_supported,
                       is_initialized, is_tf32_supported, set_device, synchronize)
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables
from .memory import (OutOfMemoryError, caching_allocator_alloc, caching_allocator_delete, empty_cache,
                     get_allocator_backend, get_per_process_memory_fraction, host_memory_stats,
                     max_memory_allocated, max_memory_cached, max_memory_reserved, mem_get_info,
                     memory_allocated, memory_cached, memory_reserved, memory_snapshot, memory_stats,
                     memory_stats_as_nested_dict, memory_summary, reset_accumulated_memory_stats,
                     reset_max_memory_allocated, reset_max_memory_cached, reset_peak_memory_stats,
                     set_per_process_memory_fraction)
from .random import (get_rng_state, get_rng_state_all, initial_seed, manual_seed, manual_seed_all, seed,
                     seed_all, set_rng_state, set_rng_state_all)
from .streams import (Event, ExternalStream, Stream, StreamContext, current_stream, default_stream,
                      get_stream_from_external, set_stream, stream)

has_half, has_magma = True, False
_lazy_init = init


def _is_compiled():
    """Whether this build knows CUDA; a device may still be missing."""
    return _C._cuda.is_compiled


def _lazy_call(callable, **options):
    callable()


def ipc_collect():
    """Has no effect: no memory of a device is shared with other processes."""


def get_sync_debug_mode():
    return 0


def set_sync_debug_mode(debug_mode):
    if debug_mode not in (0, "default"):
        raise NotImplementedError("set_sync_debug_mode(): waits of the host are not reported")


def _not_measured(name):
    def refuse(device=None):
        raise NotImplementedError(f"torch.cuda.{name}() is not there: nvidia-smi shows it")

    refuse.__name__ = name
    return refuse


utilization, memory_usage, temperature, power_draw, clock_rate = map(
    _not_measured, ("utilization", "memory_usage", "temperature", "power_draw", "clock_rate"))


def cudart():
    raise NotImplementedError("torch.cuda.cudart() is not there: the driver is called, not CUDA's runtime "
                              "library")


def current_blas_handle():
    raise NotImplementedError("torch.cuda.current_blas_handle() is not there: products go through cuBLASLt, "
                              "which has none")


# Older names: torch.cuda.FloatTensor(2, 3), torch.cuda.FloatStorage(6).
for _dtype, _type in _TYPE_NAMES.items():
    globals()[f"{_type}Storage"] = _typed_storage(_type, getattr(_C, _dtype), "cuda")
    if not _type.startswith("Complex"):
        globals()[f"{_type}Tensor"] = _typed_tensor(_type, getattr(_C, _dtype), "cuda")


def __getattr__(name):
    if name == "default_generators":
        return tuple(random._generator(d) for d in range(device_count()))
    raise AttributeError(f"module 'torch.cuda' has no attribute {name!r}")
