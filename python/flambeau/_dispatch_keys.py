"""Dispatch keys, which extensions for PyTorch name when they register operators. Flambeau dispatches by its
own state: keys are names here, and a guard that excludes autocast's switches autocast off."""
import enum

from . import _C

DispatchKey = enum.Enum("DispatchKey", [
    "Undefined", "CPU", "CUDA", "Meta", "XPU", "MPS", "AutocastCPU", "AutocastCUDA", "AutocastXPU",
    "AutocastMPS", "Autograd",
    "AutogradCPU", "AutogradCUDA", "ADInplaceOrView", "BackendSelect", "CompositeImplicitAutograd",
    "CompositeExplicitAutograd", "Functionalize", "FuncTorchBatched", "FuncTorchVmapMode", "Python",
    "PythonTLSSnapshot", "SparseCPU", "QuantizedCPU", "MkldnnCPU", "PreDispatch"])


Tag = enum.Enum("Tag", [
    "core", "cudagraph_unsafe", "data_dependent_output", "dynamic_output_shape", "flexible_layout",
    "generated",
    "inplace_view", "maybe_aliasing_or_mutating", "needs_contiguous_strides", "needs_exact_strides",
    "needs_fixed_stride_order", "nondeterministic_bitwise", "nondeterministic_seeded", "pointwise",
    "pt2_compliant_tag", "reduction", "view_copy"])
Tag.__doc__ = "What extensions say of operators that they register; nothing reads it."


class DispatchKeySet:
    """Several keys: sets are joined by |."""

    def __init__(self, *keys):
        self.keys = frozenset(keys)

    def __or__(self, other):
        return DispatchKeySet(*self.keys, *other.keys)

    def has(self, key):
        return key in self.keys


class _ExcludeDispatchKeyGuard:
    """A scope without some keys."""

    def __init__(self, keys):
        self._off = keys.has(DispatchKey.AutocastCPU)

    def __enter__(self):
        self._before = _C._autocast_enabled(), _C._autocast_dtype(), _C._autocast_caches()
        if self._off:
            _C._set_autocast(False, *self._before[1:])

    def __exit__(self, *error):
        _C._set_autocast(*self._before)


def _log_api_usage_once(name):
    """Nothing is logged."""


def _get_tracing_state():
    """TorchScript does not trace here."""


def _get_accelerator(check=None):
    return _C.device("cpu")


for _name in ("DispatchKey", "Tag", "DispatchKeySet", "_ExcludeDispatchKeyGuard", "_log_api_usage_once",
              "_get_tracing_state",
              "_get_accelerator"):
    setattr(_C, _name, globals()[_name])
