"""Special functions, element by element: torch.special.

Those that kernels are made of (erf, log1p, ...) are fused and compiled like any arithmetic; the others
(Bessel functions, incomplete gamma functions, orthogonal polynomials, ...) are computed in float64 and
rounded once.
"""
from ._namespaces import operators_with_prefix

_operators = operators_with_prefix("special_")
globals().update(_operators)

__all__ = sorted(_operators)
