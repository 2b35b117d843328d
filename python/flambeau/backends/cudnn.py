"""cuDNN: allow_tf32 is what convolutions of float32 look at. The other switches are kept, and nothing reads them:
algorithms are deterministic, and chosen without measuring.
"""
import contextlib
import sys

from .. import _C
from ._precision import ConvolutionSettings, make_cudnn_module

enabled, benchmark, deterministic, benchmark_limit = True, False, False, 10
conv = ConvolutionSettings()
_NAMES = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None,
              _fp32_precision="none"):
    """Sets what is given; returns what was before."""
    module = sys.modules[__name__]
    before = tuple(getattr(module, name) for name in _NAMES)
    for name, value in zip(_NAMES, (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)):
        if value is not None:
            setattr(module, name, value)
    return before


@contextlib.contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True,
          fp32_precision="none"):
    """The switches within a scope."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)


def version():
    """91900 for 9.19.0; None where the library is not there."""
    return _C._cuda.is_compiled and _C._cuda.cudnn_version() or None


def is_available():
    """Whether convolutions on GPUs have the library."""
    return version() is not None and _C._cuda.device_count() > 0


def is_acceptable(tensor):
    return tensor.is_cuda and tensor.dtype in (_C.float16, _C.bfloat16, _C.float32, _C.float64)


make_cudnn_module(__name__)
