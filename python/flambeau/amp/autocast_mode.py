"""autocast: a scope in which products and convolutions compute in bfloat16 or float16, and losses in float32.

The casts themselves are made where operators are dispatched (flambeau/op/autocast.cpp, which has the lists).
"""
import functools
import warnings

from .. import _C

_CUDA_DTYPES = (_C.float16, _C.bfloat16, _C.float32)
_CPU_DTYPES = (_C.bfloat16, _C.float16)
_DEVICES = ("cpu", "cuda")
# Of other devices only the setting is kept: no operator runs there.
_others = {"xpu": (False, _C.float16), "mps": (False, _C.float16),
           "hpu": (False, _C.bfloat16),
           "xla": (False, _C.bfloat16), "mtia": (False, _C.float16), "ipu": (False, _C.float16),
           "meta": (False, _C.bfloat16)}


def _known(device_type):
    if not isinstance(device_type, str):
        raise TypeError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in _DEVICES and device_type not in _others:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
    return device_type


def is_autocast_available(device_type):
    """Whether there is autocast for a type of device."""
    return device_type in _DEVICES or device_type in _others


def is_autocast_enabled(device_type=None):
    """Whether autocast is on for a type of device; without one, for CUDA, as in PyTorch."""
    device_type = _known(device_type or "cuda")
    return _C._autocast_enabled(device_type) if device_type in _DEVICES else _others[device_type][0]


def get_autocast_dtype(device_type):
    """The dtype that autocast casts to."""
    return _C._autocast_dtype(device_type) if _known(device_type) in _DEVICES else _others[device_type][1]


def set_autocast_enabled(device_type, enabled=None):
    """Switches autocast for a type of device; set_autocast_enabled(enabled): for CUDA."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    _set(device_type, enabled, get_autocast_dtype(device_type))


def set_autocast_dtype(device_type, dtype):
    _set(device_type, is_autocast_enabled(device_type), dtype)


def _set(device_type, enabled, dtype):
    if device_type in _DEVICES:
        _C._set_autocast(device_type, bool(enabled), dtype)
    else:
        _others[device_type] = (bool(enabled), dtype)


def is_autocast_cache_enabled():
    return _C._autocast_caches()


def set_autocast_cache_enabled(enabled):
    """Whether casts of parameters are kept within a scope."""
    _C._set_autocast_caches(enabled)


def clear_autocast_cache():
    _C._clear_autocast_cache()


def autocast_increment_nesting():
    return _C._autocast_depth(1)


def autocast_decrement_nesting():
    return _C._autocast_depth(-1)


# Older names.
def is_autocast_cpu_enabled():
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled):
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype():
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype):
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype():
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype):
    set_autocast_dtype("cuda", dtype)


class autocast:
    """A context manager and decorator, for tensors of one type of device.

    dtype is bfloat16 on the CPU and float16 on CUDA unless given; either may have the other. enabled=False
    switches off what an outer scope switched on.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.device = _known(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if device_type == "cpu" and enabled and self.fast_dtype not in _CPU_DTYPES:
            warnings.warn(f"In CPU autocast, but the target dtype {self.fast_dtype} is not supported. "
                          "Disabling autocast. CPU Autocast only supports dtype of torch.bfloat16, "
                          "torch.float16 currently.",
                          stacklevel=2)
            enabled = False
        if device_type == "cuda" and enabled and not _C._cuda.device_count():
            warnings.warn("User provided device_type of 'cuda', but CUDA is not available. Disabling",
                          stacklevel=2)
            enabled = False
        if device_type == "cuda" and enabled and self.fast_dtype not in _CUDA_DTYPES:
            raise RuntimeError("autocast on CUDA computes in float16, bfloat16 or float32, got "
                               f"{self.fast_dtype}")
        self._enabled = bool(enabled)

    def __enter__(self):
        self._before = (is_autocast_enabled(self.device), get_autocast_dtype(self.device),
                        is_autocast_cache_enabled())
        autocast_increment_nesting()
        set_autocast_cache_enabled(self._cache_enabled)
        keeps = self.device == "cpu" and self.fast_dtype not in _CPU_DTYPES
        _set(self.device, self._enabled, self._before[1] if keeps else self.fast_dtype)
        return self

    def __exit__(self, *error):
        enabled, dtype, caches = self._before
        autocast_decrement_nesting()
        _set(self.device, enabled, dtype)
        set_autocast_cache_enabled(caches)
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled):
                return function(*args, **kwargs)

        return inside


def _cast(value, device_type, dtype):
    """Floating tensors of a device inside nested containers, cast."""
    if isinstance(value, _C.Tensor):
        floating = value.is_floating_point() and value.dtype is not _C.float64
        return value.to(dtype) if floating and value.device.type == device_type else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_cast(v, device_type, dtype) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, dtype) for v in value)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """For forward() of an autograd.Function: runs it in autocast's mode, or off it with inputs cast to a
    dtype.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args, **kwargs):
        args[0]._dtype = get_autocast_dtype(device_type)
        args[0]._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not is_autocast_enabled(device_type):
            return fwd(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd=None, *, device_type):
    """For backward() of an autograd.Function: runs it in the mode that forward() had."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return backward
