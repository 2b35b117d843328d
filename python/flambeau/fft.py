"""Discrete Fourier transforms of any length, over one dimension or many: torch.fft."""
from ._namespaces import operators_with_prefix

_operators = operators_with_prefix("fft_")
globals().update(_operators)

__all__ = sorted(_operators)
