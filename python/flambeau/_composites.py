"""Functions that are short compositions of operators."""
import math

from . import _C
from ._C import Tensor
from .overrides import dispatched, public_in

__all__ = []
_python_range = range
_public = public_in(__all__)


def _both(function):
    """A function that is a method of Tensor too."""
    setattr(Tensor, function.__name__, dispatched(function, method=True))
    return _public(function)


def _write(result, out):
    """The result in the tensor `out`, where one is given."""
    if out is None:
        return result
    if not can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"out= cannot hold the result: it has dtype {str(out.dtype)[6:]}, the result "
                           f"{str(result.dtype)[6:]}, and there is no such cast")
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


# ---- dtypes


def can_cast(from_, to):
    """Whether a result of one dtype may be written into a tensor of another."""
    order = {"bool": 0, "integral": 1, "floating": 2, "complex": 3}
    return order[_category(from_)] <= order[_category(to)]


def _category(dtype):
    if dtype.is_complex:
        return "complex"
    return "floating" if dtype.is_floating_point else "bool" if dtype is _C.bool else "integral"


def promote_types(type1, type2):
    """The smallest dtype that holds both."""
    return (_C.empty((1,), dtype=type1, device="meta") + _C.empty((1,), dtype=type2, device="meta")).dtype


def result_type(tensor1, tensor2):
    """The dtype of arithmetic on two tensors or numbers."""
    if not isinstance(tensor1, Tensor) and not isinstance(tensor2, Tensor):
        tensor1 = _C.tensor(tensor1)
    return _C.add(_meta(tensor1), _meta(tensor2)).dtype


def _meta(value):
    """A tensor of one element where there are dimensions: their sizes do not matter."""
    if not isinstance(value, Tensor):
        return value
    return _C.empty((1,) if value.dim() else (), dtype=value.dtype, device="meta")


__all__ += ["can_cast", "promote_types", "result_type"]


# ---- shapes


@_public
def broadcast_shapes(*shapes):
    """The size that the shapes broadcast to."""
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    for s in shapes:
        if any(n < 0 for n in s):
            raise RuntimeError(f"Trying to create tensor with negative dimension ({min(s)}): ({min(s)})")
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for d, n in zip(_python_range(rank - len(s), rank), s):
            if n != 1 and out[d] not in (1, n):
                raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
            out[d] = n if n != 1 else out[d]
    return _C.Size(out)


# ---- unique


def _asked_for(results, return_inverse, return_counts):
    values, inverse, counts = results
    out = [values] + [inverse] * return_inverse + [counts] * return_counts
    return out[0] if len(out) == 1 else tuple(out)


@_both
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements (or slices along dim), with where each came from and how often, if asked."""
    results = (_C._unique2(input, sorted, return_inverse, return_counts) if dim is None
               else _C.unique_dim(input, dim, sorted, return_inverse, return_counts))
    return _asked_for(results, return_inverse, return_counts)


@_both
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of every run of equal elements (or slices along dim)."""
    return _asked_for(_C.unique_consecutive(input, return_inverse, return_counts, dim), return_inverse,
                      return_counts)


# ---- numbers


@_public
def range(start, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """start, start + step, ..., end: like arange, end included."""
    if end is None:
        start, end = 0, start
    count = int(math.floor((end - start) / step)) + 1
    wanted = dtype or _C.get_default_dtype()
    result = (_C.arange(count, dtype=_C.float64, device=device) * step + start).to(wanted)
    return _write(result, out).requires_grad_(requires_grad) if requires_grad else _write(result, out)
