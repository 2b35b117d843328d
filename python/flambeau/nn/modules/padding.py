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


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class _CircularPadNd(_Pad):
    _mode = "circular"

    def forward(self, input):
        if input.dim() not in (self._spatial + 1, self._spatial + 2):
            raise ValueError(f"'input' needs {self._spatial + 1} or {self._spatial + 2} dimensions, not "
                             f"{input.dim()}")
        return super().forward(input)


def _for_1_to_3_dimensions(base, name, what):
    """The classes name1d, name2d and name3d: the same padding around one, two and three dimensions."""
    for spatial, where in ((1, "dimension"), (2, "two dimensions"), (3, "three dimensions")):
        yield type(f"{name}{spatial}d", (base,), {"__module__": __name__, "_spatial": spatial,
                                                  "__doc__": f"{what} around the last {where}."})


ConstantPad1d, ConstantPad2d, ConstantPad3d = _for_1_to_3_dimensions(_ConstantPadNd, "ConstantPad", "value")
ZeroPad1d, ZeroPad2d, ZeroPad3d = _for_1_to_3_dimensions(_ZeroPad, "ZeroPad", "Zeros")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _for_1_to_3_dimensions(
    _ReflectionPadNd, "ReflectionPad", "The elements mirrored at the edge, which are not repeated,")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _for_1_to_3_dimensions(
    _ReplicationPadNd, "ReplicationPad", "The elements at the edge")
CircularPad1d, CircularPad2d, CircularPad3d = _for_1_to_3_dimensions(
    _CircularPadNd, "CircularPad", "The elements of the other end")
