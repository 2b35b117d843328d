"""Functions of the torch namespace that are no operators: tensors of other objects, settings, checks."""
from . import _C
from ._C import Tensor
from ._types import get_default_device
from .backends import _precision
from .overrides import dispatched, public_in

__all__ = []
_public = public_in(__all__)


tensor = dispatched(_C.tensor, "tensor")
from_dlpack = dispatched(_C.from_dlpack, "from_dlpack")
__all__ += ["tensor", "from_dlpack"]


def is_tensor(obj):
    """Whether obj is a Tensor."""
    return isinstance(obj, Tensor)


__all__.append("is_tensor")


@_public
def as_tensor(data, dtype=None, device=None):
    """data as a Tensor, sharing memory with a tensor or array where dtype and device allow."""
    if isinstance(data, Tensor):
        return data.to(device, dtype) if (dtype or device) is not None else data
    if (hasattr(data, "__array_interface__") and type(data).__module__ == "numpy"
            and type(data).__name__ == "ndarray"):
        return _from_numpy_or_copy(data).to(device, dtype)
    return _C.tensor(data, dtype=dtype, device=device)


def _from_numpy_or_copy(array):
    try:
        return _C.from_numpy(array)
    except (ValueError, RuntimeError, BufferError):
        return _C.tensor(array)


@_public
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """obj, a tensor, array, DLPack object or buffer, as a Tensor; it shares memory unless copy is True."""
    shares = True
    if isinstance(obj, Tensor):
        result = obj
    elif hasattr(obj, "__array_interface__") and hasattr(obj, "shape") and obj.shape != ():
        result = _from_numpy_or_copy(obj)
    elif hasattr(obj, "__dlpack__"):
        result = _C.from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        result = frombuffer(obj, dtype=dtype or _C.get_default_dtype())
    else:
        shares = False
        result = _C.tensor(obj, dtype=dtype, device=device)
    if copy is False and not shares:
        raise ValueError(f"copy=False: a tensor cannot share the memory of a {type(obj).__name__}")
    converted = result.to(device, dtype)
    if copy is False and converted is not result:
        raise ValueError("can't alias tensor with another dtype or device")
    if copy is True and shares and converted is result:
        converted = result.clone()
    if requires_grad or (converted.requires_grad and not isinstance(obj, Tensor)):
        converted = converted.detach().requires_grad_(requires_grad)
    return converted


@_public
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A 1-dim tensor on the memory of a buffer."""
    storage = _C.UntypedStorage._on_buffer(buffer)
    total, size = storage.nbytes(), dtype.itemsize
    if total == 0 or count == 0:
        raise ValueError(f"both buffer length ({total}) and count ({count}) must not be 0")
    if not 0 <= offset < total:
        raise ValueError(f"frombuffer: offset={offset} lies outside of the buffer of {total} bytes")
    if count < 0 and (total - offset) % size:
        raise ValueError(f"frombuffer: the {total - offset} bytes from offset {offset} on are no whole "
                         f"number of elements of {size} bytes; give count")
    count = (total - offset) // size if count < 0 else count
    if offset + count * size > total:
        raise ValueError(f"frombuffer: {count} elements of {size} bytes from offset {offset} on do not fit "
                         f"into a buffer of {total} bytes")
    if offset % size == 0:
        flat = _C._tensor_on_storage(storage, dtype, offset // size, (count,))
    else:
        flat = _C._tensor_on_storage(storage, _C.uint8, offset, (count * size,)).clone().view(dtype)
    return flat.requires_grad_() if requires_grad else flat


def typename(obj):
    """The name of a value's type, with its module; of a tensor: "torch.FloatTensor"."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", None) else f"{module}.{kind.__qualname__}"


__all__.append("typename")


def _method(name):
    def function(input, *args, **kwargs):
        return getattr(input, name)(*args, **kwargs)

    function.__name__ = name
    function.__doc__ = f"input.{name}(...)"
    globals()[name] = _public(function)


for _name in ("numel", "is_floating_point", "is_complex", "is_signed", "is_same_size", "is_inference",
              "is_conj", "is_neg", "resolve_conj", "resolve_neg", "detach_", "resize_as_", "get_device",
              "is_nonzero", "is_distributed"):
    _method(_name)


def compiled_with_cxx11_abi():
    return True


def _assert(condition, message):
    """assert as a function."""
    if not condition:
        raise AssertionError(message() if callable(message) else message)


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Every algorithm here is deterministic: the setting is kept, and changes nothing."""
    _deterministic.update(on=bool(mode), warn_only=bool(warn_only))


_deterministic = {"on": False, "warn_only": False}


def are_deterministic_algorithms_enabled():
    return _deterministic["on"]


def is_deterministic_algorithms_warn_only_enabled():
    return _deterministic["warn_only"]


def set_deterministic_debug_mode(mode):
    use_deterministic_algorithms(mode not in (0, "default"), warn_only=mode in (1, "warn"))


def get_deterministic_debug_mode():
    return 0 if not _deterministic["on"] else 1 if _deterministic["warn_only"] else 2


def get_float32_matmul_precision():
    return _precision.matmul_precision()


def set_float32_matmul_precision(precision):
    """"highest", or "high" or "medium": products of float32 on a CUDA device may be computed in TF32."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError("set_float32_matmul_precision(): expected 'highest', 'high' or 'medium', got "
                           f"{precision!r}")
    _precision.set_matmul_precision(precision)


def set_warn_always(on):
    """Has no effect: Python's own filters decide how often a warning is shown."""


def is_warn_always_enabled():
    return False


def set_flush_denormal(mode):
    """Denormal numbers are kept on this build: returns False."""
    return False


def get_device_module(device=None):
    """The module of a device's type: torch.cpu, torch.cuda, ...; without a device, of the current one."""
    from importlib import import_module

    kind = (get_default_device() if device is None else _C.device(device)).type
    try:
        return import_module(f"{__package__}.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(f"get_device_module(): devices of type '{kind}' have no module") from None


def init_num_threads():
    """Has no effect: threads start with the first kernel that needs them."""


def to_dlpack(tensor):
    """The tensor as a DLPack capsule."""
    return tensor.__dlpack__()


def set_anomaly_enabled(mode, check_nan=True):
    from .autograd import set_detect_anomaly

    set_detect_anomaly(mode, check_nan)


def is_anomaly_enabled():
    from .autograd import anomaly_mode

    return anomaly_mode.is_anomaly_enabled()


def is_anomaly_check_nan_enabled():
    from .autograd import anomaly_mode

    return anomaly_mode.is_anomaly_check_nan_enabled()


def get_num_interop_threads():
    """1: an operator starts when the one before is done."""
    return 1


def set_num_interop_threads(count):
    """Has no effect: an operator starts when the one before is done."""


__all__ += ["get_device_module", "init_num_threads", "to_dlpack", "set_anomaly_enabled",
            "is_anomaly_enabled", "is_anomaly_check_nan_enabled", "compiled_with_cxx11_abi", "_assert",
            "use_deterministic_algorithms", "are_deterministic_algorithms_enabled",
            "is_deterministic_algorithms_warn_only_enabled", "set_deterministic_debug_mode",
            "get_deterministic_debug_mode", "get_float32_matmul_precision", "set_float32_matmul_precision",
            "set_warn_always", "is_warn_always_enabled", "set_flush_denormal", "get_num_interop_threads",
            "set_num_interop_threads"]


def _checker(name, error):
    def check(cond, message=None):
        if not cond:
            raise error(message() if callable(message) else "Expected cond to be True, but got False")

    check.__name__, check.__doc__ = name, f"Raises {error.__name__} with message() unless cond."
    return check


_check = _checker("_check", RuntimeError)
_check_index, _check_value = _checker("_check_index", IndexError), _checker("_check_value", ValueError)
_check_type = _checker("_check_type", TypeError)
_check_not_implemented = _checker("_check_not_implemented", NotImplementedError)


def _check_is_size(i, message=None, *, max=None):
    """Raises RuntimeError unless i can be a size."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_with(error_type, cond, message=None):
    _checker("_check_with", error_type)(cond, message)


__all__ += ["_check", "_check_index", "_check_value", "_check_type", "_check_not_implemented",
            "_check_is_size", "_check_with"]
