"""Padding."""
from flambeau.nn import functional as F
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.tuples import _ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]


class _Pad(Module):
    """padding: one number, or one before and one after each dimension, the last dimension first."""

    __constants__ = ["padding"]
    _mode, _spatial = None, None

    def __init__(self, padding):
        super().__init__()
        self.padding = _ntuple(2 * self._spatial, "")(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """value around the last dimension."""

    _spatial = 1


class ConstantPad2d(_ConstantPadNd):
    """value around the last two dimensions."""

    _spatial = 2


class ConstantPad3d(_ConstantPadNd):
    """value around the last three dimensions."""

    _spatial = 3


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Zeros around the last dimension."""

    _spatial = 1


class ZeroPad2d(_ZeroPad):
    """Zeros around the last two dimensions."""

    _spatial = 2


class ZeroPad3d(_ZeroPad):
    """Zeros around the last three dimensions."""

    _spatial = 3


class _ReflectionPadNd(_Pad):
    """The elements mirrored at the edge, which are not repeated."""

    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    _spatial = 1


class ReflectionPad2d(_ReflectionPadNd):
    _spatial = 2


class ReflectionPad3d(_ReflectionPadNd):
    _spatial = 3


class _ReplicationPadNd(_Pad):
    """The elements at the edge."""

    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    _spatial = 1


class ReplicationPad2d(_ReplicationPadNd):
    _spatial = 2


class ReplicationPad3d(_ReplicationPadNd):
    _spatial = 3


class _CircularPadNd(_Pad):
    """The elements of the other end."""

    _mode = "circular"

    def forward(self, input):
        if input.dim() not in (self._spatial + 1, self._spatial + 2):
            raise ValueError(f"'input' needs {self._spatial + 1} or {self._spatial + 2} dimensions, not "
                             f"{input.dim()}")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    _spatial = 1


class CircularPad2d(_CircularPadNd):
    _spatial = 2


class CircularPad3d(_CircularPadNd):
    _spatial = 3
