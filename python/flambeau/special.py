"""Special functions, element by element: torch.special.

Those that kernels are made of (erf, log1p, ...) are fused and compiled like any arithmetic; the others
(Bessel functions, incomplete gamma functions, orthogonal polynomials, ...) are computed in float64 and
rounded once.
"""
from . import _C
from ._namespaces import operators_with_prefix

_SAME_NAME = ("digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "log_softmax", "logit",
              "logsumexp",
              "polygamma", "round", "sinc", "softmax", "xlogy")
_OTHER_NAME = {"expit": "sigmoid", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma",
               "multigammaln": "mvlgamma", "psi": "digamma"}

_operators = operators_with_prefix("special_")
_operators |= {name: getattr(_C, name) for name in _SAME_NAME if hasattr(_C, name)}
_operators |= {name: getattr(_C, operator) for name, operator in _OTHER_NAME.items()}
globals().update(_operators)

__all__ = sorted(_operators)
