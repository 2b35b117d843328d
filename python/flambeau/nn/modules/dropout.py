"""Dropout."""
from flambeau.nn import functional as F
from flambeau.nn.modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]
    _function = None

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"'p' is a probability, between 0 and 1, not {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input):
        return type(self)._function(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, elements become 0 with probability p and the rest is divided by 1 - p."""

    _function = staticmethod(F.dropout)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of (N, C, L) or (C, L)."""

    _function = staticmethod(F.dropout1d)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of (N, C, H, W)."""

    _function = staticmethod(F.dropout2d)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of (N, C, D, H, W)."""

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_DropoutNd):
    """Dropout that goes with SELU: mean and variance stay."""

    def forward(self, input):
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    def forward(self, input):
        return F.feature_alpha_dropout(input, self.p, self.training)
