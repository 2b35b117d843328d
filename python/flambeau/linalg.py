"""Linear algebra on matrices and batches of matrices: torch.linalg.

Computed by LAPACK in float32, float64, complex64 and complex128. Batches broadcast where PyTorch's do; a
singular matrix or an iteration that does not converge raises LinAlgError, which names the batch element.
"""
from ._C import LinAlgError
from ._namespaces import operators_with_prefix

_operators = operators_with_prefix("linalg_")
globals().update(_operators)

__all__ = ["LinAlgError", *sorted(_operators)]
