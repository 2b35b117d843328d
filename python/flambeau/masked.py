"""Reductions and normalisations of the elements under a mask, with the signatures of torch.masked.

`mask` is a tensor of bool that is broadcast to the input's sizes; without one every element counts. Where no
element counts, the result is that of the operation on nothing: 0 of a sum, -inf of a maximum, nan of a mean.
"""
import math

from . import _C
from ._C import Tensor

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp",
           "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std",
           "sum", "var"]


def _dims(dim, rank):
    """The dimensions of a call in order; all of them for None."""
    if dim is None:
        return tuple(range(rank))
    out = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -max(rank, 1) <= d < max(rank, 1):
            raise IndexError(f"dimension {d} is out of range: {rank} dimensions take {-max(rank, 1)} to "
                             f"{max(rank, 1) - 1}")
        if d % max(rank, 1) in out:
            raise RuntimeError(f"dim={d % max(rank, 1)} was given multiple times")
        out.append(d % max(rank, 1))
    return tuple(sorted(out)) if rank else ()


def _full_mask(input, mask):
    """The mask in the input's sizes."""
    if mask.dim() > input.dim():
        raise IndexError("expected a mask that can be broadcast to the input, but it has more dimensions: "
                         f"{mask.dim()} and {input.dim()}")
    return mask.bool().expand(input.shape)


def _masked(input, mask, value):
    """The input with a number where the mask does not hold."""
    if not isinstance(input, Tensor):
        raise TypeError(f"expected a Tensor, got {type(input).__name__}")
    if mask is None:
        return input
    value = _C.full((), value, dtype=input.dtype, device=input.device)
    return _C.where(_full_mask(input, mask), input, value)


def _input_mask(input, *args, mask=None, **kwargs):
    """The mask of a call, in the input's sizes."""
    if mask is None:
        raise ValueError("_input_mask() is for calls with a mask")
    return _full_mask(input, mask)


_KEEP_SIZES = ("cumprod", "cumsum", "log_softmax", "normalize", "softmax", "softmin")


def _output_mask(op, input, *args, dim=None, keepdim=False, mask=None, **kwargs):
    """Which elements of op's result come from something: op is a function of this module."""
    name = getattr(op, "__name__", None)
    if name not in __all__ or name == "logaddexp":
        raise ValueError(f"_output_mask(): {op} is no function of torch.masked on one tensor")
    full = _input_mask(input, mask=mask)
    if name in _KEEP_SIZES:
        return full
    positional = args[1:] if name == "norm" else args
    dims = _dims(positional[0] if positional else dim, input.dim())
    for d in reversed(dims):
        full = full.any(d, bool(keepdim))
    return full


def _lowest(dtype):
    """The number that is no maximum of others."""
    if dtype.is_floating_point:
        return -math.inf
    size = {_C.bool: 1, _C.uint8: 8, _C.int8: 8, _C.int16: 16, _C.int32: 32, _C.int64: 64}[dtype]
    return 0 if dtype in (_C.bool, _C.uint8) else -(1 << (size - 1))


def _highest(dtype):
    if dtype.is_floating_point:
        return math.inf
    return {_C.bool: 1, _C.uint8: 255}.get(dtype, -1 - _lowest(dtype))


def _is_whole(dtype):
    return not (dtype.is_floating_point or dtype.is_complex)


def _sum_dtype(input, dtype):
    return dtype or (_C.int64 if _is_whole(input.dtype) else input.dtype)


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The sum over dimensions; of integers in int64."""
    return _C.sum(_masked(input, mask, 0), _dims(dim, input.dim()), bool(keepdim),
                  dtype=_sum_dtype(input, dtype))


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product over dimensions; of integers in int64."""
    out, dtype = _masked(input, mask, 1), _sum_dtype(input, dtype)
    dims = _dims(dim, input.dim())
    if not dims:
        dims = tuple(range(input.dim()))
    out = out.to(dtype)
    for d in reversed(dims):
        out = out.prod(d, bool(keepdim))
    return out


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sums; an element that does not count adds nothing."""
    _dims(dim, input.dim())
    return _C.cumsum(_masked(input, mask, 0), dim, dtype=_sum_dtype(input, dtype))


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running products; an element that does not count changes nothing."""
    _dims(dim, input.dim())
    return _C.cumprod(_masked(input, mask, 1), dim, dtype=_sum_dtype(input, dtype))


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The maximum over dimensions."""
    out = _C.amax(_masked(input, mask, _lowest(input.dtype)), _dims(dim, input.dim()), bool(keepdim))
    return out.to(dtype or input.dtype)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The minimum over dimensions."""
    out = _C.amin(_masked(input, mask, _highest(input.dtype)), _dims(dim, input.dim()), bool(keepdim))
    return out.to(dtype or input.dtype)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The position of the maximum, in the dtype of the input unless another is given."""
    return _C.argmax(_masked(input, mask, _lowest(input.dtype)), dim, bool(keepdim)).to(dtype or input.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The position of the minimum, in the dtype of the input unless another is given."""
    return _C.argmin(_masked(input, mask, _highest(input.dtype)), dim, bool(keepdim)).to(dtype or input.dtype)


def _count(input, dims, keepdim, mask):
    """How many elements count."""
    ones = _C.ones(input.shape, dtype=_C.int64, device=input.device)
    return sum(ones, dims, keepdim=keepdim, mask=mask)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean over dimensions."""
    dtype, dims = dtype or input.dtype, _dims(dim, input.dim())
    if _is_whole(dtype):
        raise ValueError(f"mean expects a floating point or complex dtype, got {dtype}")
    if mask is None:
        return _C.mean(input, dims, bool(keepdim), dtype=dtype)
    return sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask) / _count(input, dims, keepdim, mask)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The middle element along a dimension; of two the lower."""
    dtype = dtype or input.dtype
    (dim,) = _dims(int(dim), input.dim()) or (0,)
    if mask is not None and _is_whole(input.dtype) and not _full_mask(input, mask).all():
        raise ValueError("masked median: every row of an integer input needs an element that is not masked "
                         "out")
    if _is_whole(input.dtype):
        return _C.median(input, dim, bool(keepdim)).values.to(dtype)
    return _C.nanmedian(_masked(input, mask, math.nan), dim, bool(keepdim)).values.to(dtype)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log(sum(exp(x))) over dimensions."""
    out = _masked(input, mask, _lowest(input.dtype))
    return _C.logsumexp(out, _dims(dim, input.dim()), bool(keepdim)).to(dtype or input.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(x) + exp(y)); what does not count is exp(-inf) = 0."""
    dtype = dtype or input.dtype
    return _C.logaddexp(_masked(input, input_mask, -math.inf),
                        _masked(other, other_mask, -math.inf)).to(dtype)


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The vector norm over dimensions."""
    ord = 2.0 if ord is None else float(ord)
    out = _masked(input, mask, math.inf if ord == -math.inf else 0)
    return _C.linalg_vector_norm(out, ord, _dims(dim, input.dim()), bool(keepdim), dtype=dtype or input.dtype)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """Divided by the norm along a dimension, which counts as eps at least."""
    dtype = dtype or input.dtype
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _masked(input, mask, 0) / _C.maximum(size, _C.full((), eps, dtype=size.dtype, device=size.device))


def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax along a dimension; what does not count gets 0."""
    (dim,) = _dims(int(dim), input.dim()) or (0,)
    return _C.softmax(_masked(input, mask, _lowest(input.dtype)), dim, dtype=dtype or input.dtype)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """Logarithm of the softmax along a dimension."""
    (dim,) = _dims(int(dim), input.dim()) or (0,)
    return _C.log_softmax(_masked(input, mask, _lowest(input.dtype)), dim, dtype=dtype or input.dtype)


def softmin(input, dim, *, dtype=None, mask=None):
    """Softmax of -x along a dimension."""
    (dim,) = _dims(int(dim), input.dim()) or (0,)
    return _C.softmax(-_masked(input, mask, _highest(input.dtype)), dim, dtype=dtype or input.dtype)


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    correction = correction if correction is not None else 0 if unbiased is False else 1
    dtype = dtype or (_C.float32 if _is_whole(input.dtype) else input.dtype)
    compute = dtype if dtype.is_floating_point or dtype.is_complex else _C.float32
    dims = _dims(dim, input.dim())
    count = _count(input, dims, True, mask)
    centre = sum(input, dims, keepdim=True, dtype=compute, mask=mask) / count
    away = _masked(input - centre, mask, 0)
    square = away * away.conj() if away.is_complex() else away * away
    total = sum(square, dims, keepdim=keepdim, dtype=compute)
    count = count if keepdim else count.reshape(total.shape)
    divisor = _C.maximum(count - correction, _C.zeros((), dtype=count.dtype, device=count.device))
    return (total / divisor).to(dtype)


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance over dimensions, divided by max(0, n - correction)."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The standard deviation over dimensions."""
    return _C.sqrt(_variance(input, dim, unbiased, correction, keepdim, dtype, mask))
