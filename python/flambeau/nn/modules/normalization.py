"""Normalisation of layers, of groups of channels, of neighbouring channels."""
import numbers

import flambeau as fl
from flambeau.nn import functional as F, init
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """input / (k + alpha mean(input^2 over neighbouring channels))^beta."""

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """The old name of LocalResponseNorm."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, k)


class _Affine(Module):
    """A normalisation whose result is multiplied by a weight, at first 1, and added to a bias, at first 0."""

    def _make_parameter(self, name, wanted, shape, device, dtype):
        empty = Parameter(fl.empty(shape, device=device, dtype=dtype)) if wanted else None
        self.register_parameter(name, empty)

    def reset_parameters(self):
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)


class _AffineLastDims(_Affine):
    """Normalisation over the last dimensions, with weights of their shape."""

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    @staticmethod
    def _shape(normalized_shape):
        single = isinstance(normalized_shape, numbers.Integral)
        return (normalized_shape,) if single else tuple(normalized_shape)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LayerNorm(_AffineLastDims):
    """(input - mean) / sqrt(var + eps) over the last dimensions, times weight, plus bias."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None,
                 dtype=None):
        super().__init__()
        self.normalized_shape = self._shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make_parameter("weight", elementwise_affine, self.normalized_shape, device, dtype)
        self._make_parameter("bias", elementwise_affine and bias, self.normalized_shape, device, dtype)
        self.reset_parameters()

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{super().extra_repr()}, bias={self.bias is not None}"


class RMSNorm(_AffineLastDims):
    """input / sqrt(mean(input^2) + eps) over the last dimensions, times weight."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = self._shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make_parameter("weight", elementwise_affine, self.normalized_shape, device, dtype)
        self.reset_parameters()

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(_Affine):
    """(input - mean) / sqrt(var + eps) over each group of channels, then weight and bias of each channel."""

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *,
                 bias=True):
        super().__init__()
        if num_groups <= 0:
            raise ValueError(f"num_groups must be a positive integer, but got {num_groups}")
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._make_parameter("weight", affine, num_channels, device, dtype)
        self._make_parameter("bias", affine and bias, num_channels, device, dtype)
        self.reset_parameters()

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
                f"bias={self.bias is not None}")
