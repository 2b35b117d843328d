"""Facts about dtypes, and types such as FloatTensor."""
import math

from . import _C, overrides
from ._C import Tensor, device
from ._tensor import TYPE_NAMES, _construct

__all__ = ["finfo", "iinfo", "get_default_device", "set_default_device", "set_default_tensor_type", "pi", "e",
           "inf", "nan", "newaxis"]

pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None

# Bits of a float: of the fraction, of the exponent.
_FLOATS = {
    "float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11), "complex64": (23, 8),
    "complex128": (52, 11), "complex32": (10, 5), "float8_e5m2": (2, 5), "float8_e4m3fn": (3, 4),
    "float8_e5m2fnuz": (2, 5), "float8_e4m3fnuz": (3, 4), "float8_e8m0fnu": (0, 8),
}
# The largest value, of formats that use the exponent's last pattern for numbers, and the smallest normal one.
_FINITE = {"float8_e4m3fn": (448.0, 2.0**-6), "float8_e4m3fnuz": (240.0, 2.0**-7),
           "float8_e5m2fnuz": (57344.0, 2.0**-15), "float8_e8m0fnu": (2.0**127, 2.0**-127)}


def _name(dtype):
    return str(dtype)[len("torch."):]


class finfo:
    """bits, eps, max, min, tiny (smallest_normal), resolution of a floating dtype, or the default one."""

    def __init__(self, dtype=None):
        dtype = _C.get_default_dtype() if dtype is None else dtype
        name = _name(dtype)
        if name not in _FLOATS:
            raise TypeError(f"torch.finfo() is for floating point types; for '{dtype}' there is "
                            "torch.iinfo()")
        fraction, exponent = _FLOATS[name]
        top = 2 ** (exponent - 1) - 1
        self.bits = dtype.itemsize * 8 // (2 if name.startswith("complex") else 1)
        self.dtype = {"complex64": "float32", "complex128": "float64", "complex32": "float16"}.get(name, name)
        self.eps = 2.0**-fraction
        largest, smallest = _FINITE.get(name, ((2 - 2.0**-fraction) * 2.0**top, 2.0 ** (1 - top)))
        self.max, self.min = largest, -largest
        self.tiny = self.smallest_normal = smallest
        self.resolution = 10.0 ** -int(fraction * math.log10(2)) if fraction else 1.0

    def __eq__(self, other):
        return isinstance(other, finfo) and vars(self) == vars(other)

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        values = ", ".join(f"{k}={getattr(self, k):g}"
                           for k in ("resolution", "min", "max", "eps", "smallest_normal", "tiny"))
        return f"finfo({values}, dtype={self.dtype})"


class iinfo:
    """bits, min, max of an integer dtype."""

    def __init__(self, dtype):
        name = _name(dtype)
        if dtype.is_floating_point or dtype.is_complex or name == "bool" or name in _FLOATS:
            raise TypeError(f"torch.iinfo() is for integer types; for '{dtype}' there is torch.finfo()")
        self.bits = dtype.itemsize * 8
        self.dtype = name
        self.min = -(2 ** (self.bits - 1)) if dtype.is_signed else 0
        self.max = 2 ** (self.bits - dtype.is_signed) - 1

    def __eq__(self, other):
        return isinstance(other, iinfo) and vars(self) == vars(other)

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


class _TypedTensorMeta(type):
    """The type of FloatTensor and its kind: a Tensor of the right dtype is an instance."""

    def __instancecheck__(cls, value):
        return isinstance(value, Tensor) and value.dtype is cls.dtype and value.device.type == cls._where

    def __subclasscheck__(cls, other):
        return other is cls

    def __repr__(cls):
        return f"<class 'torch.{'cuda.' if cls.is_cuda else ''}{cls.__name__}'>"


def _typed_class(name, dtype, where="cpu"):
    def make(cls, *args, device=None):
        return _construct(Tensor, *args, device=where if device is None else device, _dtype=dtype)

    namespace = {"dtype": dtype, "is_cuda": where == "cuda", "layout": _C.strided, "__new__": make,
                 "_where": where,
                 "__module__": "flambeau.cuda" if where == "cuda" else "flambeau",
                 "__doc__": f"Tensors of {dtype} on {where}. Calling it makes one, of given sizes or data."}
    return _TypedTensorMeta(f"{name}Tensor", (), namespace)


for _dtype, _type in TYPE_NAMES.items():
    if not _type.startswith("Complex"):
        globals()[f"{_type}Tensor"] = _typed_class(_type, getattr(_C, _dtype))
        __all__.append(f"{_type}Tensor")


def set_default_tensor_type(t):
    """Takes the default dtype from a type such as torch.DoubleTensor, or its name."""
    dtype = getattr(t, "dtype", None) or globals()[t.rpartition(".")[2]].dtype
    on_cuda = t.startswith("torch.cuda.") if isinstance(t, str) else getattr(t, "is_cuda", False)
    _C.set_default_dtype(dtype)
    set_default_device("cuda" if on_cuda else None)


# Functions that make tensors: they take the default device.
_FACTORIES = (
    "arange", "as_tensor", "asarray", "empty", "empty_strided", "eye", "full", "linspace", "logspace",
    "ones", "rand", "randint", "randn", "randperm", "range", "tensor", "scalar_tensor",
    "tril_indices", "triu_indices", "zeros", "bartlett_window", "blackman_window", "hamming_window",
    "hann_window", "kaiser_window",
)


class _DeviceMode(overrides.TorchFunctionMode):
    """Gives functions that make tensors a device where the call gives none."""

    def __init__(self, where):
        import flambeau

        self.device = where
        self._factories = {f for f in (vars(flambeau).get(n) for n in _FACTORIES) if f is not None}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in self._factories and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


_C._set_device_mode(_DeviceMode)
_default_device_mode = None


def set_default_device(where):
    """The device of tensors made without one; None takes it back to the CPU."""
    global _default_device_mode
    if _default_device_mode is not None:
        modes = _C._torch_function_modes()
        while _C._torch_function_modes():
            _C._pop_torch_function_mode()
        for mode in modes:
            if mode is not _default_device_mode:
                _C._push_torch_function_mode(mode)
        _default_device_mode = None
    if where is not None:
        _default_device_mode = _DeviceMode(device(where))
        modes = _C._torch_function_modes()
        for _ in modes:
            _C._pop_torch_function_mode()
        for mode in [_default_device_mode, *modes]:
            _C._push_torch_function_mode(mode)


def get_default_device():
    """The device that a tensor gets where none is given."""
    for mode in reversed(_C._torch_function_modes()):
        if isinstance(mode, _DeviceMode):
            where = mode.device
            return where if where.type != "cuda" else _C.empty(0, device=where).device
    return device("cpu")


def _enter_device(self):
    mode = _DeviceMode(self)
    _C._push_torch_function_mode(mode)
    return self


def _exit_device(self, *error):
    _C._pop_torch_function_mode()


def _decorate(self, function):
    import functools

    @functools.wraps(function)
    def inside(*args, **kwargs):
        with self:
            return function(*args, **kwargs)

    return inside


device.__enter__, device.__exit__, device.__call__ = _enter_device, _exit_device, _decorate
