"""Whether products and convolutions of float32 may be computed in TF32, 10 bits of mantissa, on CUDA devices."""
import sys
import types

from .. import _C

_kept = {"matmul": False, "convolution": True}  # where the build has no CUDA
_precision = ["highest"]


def _part(name):
    return _C._cuda.Tf32.Matmul if name == "matmul" else _C._cuda.Tf32.Convolution


def allowed(part):
    """part: "matmul" or "convolution"."""
    return _C._cuda.tf32_allowed(_part(part)) if _C._cuda.is_compiled else _kept[part]


def allow(part, value):
    if _C._cuda.is_compiled:
        _C._cuda.allow_tf32(_part(part), bool(value))
    _kept[part] = bool(value)


def matmul_precision():
    """"highest", or what set_matmul_precision() was given; "high" where allow_tf32 was set."""
    if not allowed("matmul"):
        return "highest"
    return "high" if _precision[0] == "highest" else _precision[0]


def set_matmul_precision(precision):
    _precision[0] = precision
    allow("matmul", precision != "highest")


def _fp32_precision(part):
    def read(self):
        return "tf32" if allowed(part) else "ieee" if getattr(self, "_ieee", False) else "none"

    def write(self, value):
        if value not in ("none", "ieee", "tf32"):
            raise RuntimeError(f"expected a precision of 'none', 'ieee' or 'tf32', got {value!r}")
        self._ieee = value == "ieee"
        allow(part, value == "tf32")

    return property(read, write)


class MatmulSettings:
    """torch.backends.cuda.matmul: allow_tf32 (or fp32_precision = "tf32") is what products look at."""

    __slots__ = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction",
                 "allow_fp16_accumulation", "_ieee")

    def __init__(self):
        self.allow_fp16_reduced_precision_reduction = self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = self._ieee = False

    allow_tf32 = property(lambda self: allowed("matmul"), lambda self, value: allow("matmul", value))
    fp32_precision = _fp32_precision("matmul")


class ConvolutionSettings:
    """torch.backends.cudnn.conv."""

    __slots__ = ("_ieee",)

    def __init__(self):
        self._ieee = False

    fp32_precision = _fp32_precision("convolution")


class _CudnnModule(types.ModuleType):
    allow_tf32 = property(lambda self: allowed("convolution"), lambda self, value: allow("convolution", value))


def make_cudnn_module(name):
    """allow_tf32 of the module becomes what convolutions look at."""
    sys.modules[name].__class__ = _CudnnModule
