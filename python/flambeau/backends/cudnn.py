"""cuDNN. allow_tf32 is read by convolutions on GPUs: whether float32 is multiplied with 10 bits of mantissa. The
other switches are kept, and nothing reads them: engines are deterministic, and chosen by cuDNN's heuristics."""
import contextlib
import sys
import types

from .. import _C
from ._switches import scope, setter

enabled, benchmark, deterministic, allow_tf32, benchmark_limit = True, False, False, True, 10
_flags = scope(globals(), enabled=True, benchmark=False, benchmark_limit=10, deterministic=False,
               allow_tf32=True)
_set_flags = setter(globals(), "enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")


def _apply():
    if _C._cuda.is_compiled:
        _C._cuda.allow_tf32(_C._cuda.Tf32.Convolution, bool(allow_tf32))


class _Module(types.ModuleType):
    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "allow_tf32":
            _apply()


sys.modules[__name__].__class__ = _Module


def flags(**values):
    """Sets switches within a scope, to PyTorch's defaults where none is given."""
    scoped = _flags(**values)

    @contextlib.contextmanager
    def applied():
        try:
            with scoped:
                _apply()
                yield
        finally:
            _apply()

    return applied()


def set_flags(*given, **values):
    """Sets what is given, as _NAME; returns what was before."""
    before = _set_flags(*given, **values)
    _apply()
    return before


def version():
    """91900 for 9.19.0; None where the library is not there."""
    return _C._cuda.is_compiled and _C._cuda.cudnn_version() or None


def is_available():
    """Whether convolutions on GPUs have the library."""
    return version() is not None and _C._cuda.device_count() > 0


def is_acceptable(tensor):
    return False
