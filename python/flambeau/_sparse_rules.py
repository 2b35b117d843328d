"""Operators on sparse tensors in coordinate form, by their names. What is not here raises an error;
to_dense() gives what every operator takes. Gradients go through the values, and to dense operands.
"""
import math
import numbers

import flambeau

from . import _C
from ._C import Tensor
from .sparse import SparseTensor

RULES = {}
_make = SparseTensor.make


def _rule(*names):
    def register(function):
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def is_sparse(x):
    return isinstance(x, SparseTensor)


def from_dense(tensor, sparse_dim=None):
    """The elements that aren't 0, or slices of trailing dimensions with such an element: a sparse tensor."""
    sparse_dim = tensor.dim() if sparse_dim is None else sparse_dim
    if not 0 <= sparse_dim <= tensor.dim():
        raise RuntimeError(f"to_sparse: sparse_dim argument must be in [0,{tensor.dim()}] range, but "
                           f"{sparse_dim} is given")
    there = tensor.detach() != 0
    if sparse_dim < tensor.dim():
        there = there.flatten(sparse_dim).any(-1)
    places = there.nonzero().t().contiguous()
    return _make(places, tensor[tuple(places.unbind(0))] if sparse_dim else tensor[None], tensor.shape, True)


@_rule("sparse_mask")
def mask(tensor, pattern):
    """The elements of a dense tensor at the places of a sparse one."""
    pattern = pattern.coalesce()
    places = pattern._places
    return _make(places, tensor[tuple(places.unbind(0))], tensor.shape, True)


# Element by element, where 0 stays 0.
def _of_values(name):
    operator = getattr(_C, name)

    def function(s, *args, **kwargs):
        s = s.coalesce()
        return s._with(operator(s._entries, *args, **kwargs))

    RULES[name] = RULES[f"__{name}__"] = function


for _name in ("abs", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "floor",
              "frac",
              "isinf", "isnan", "log1p", "nan_to_num", "rad2deg", "relu", "round", "sgn", "sign", "signbit",
              "sin",
              "sinh", "sqrt", "square", "tan", "tanh", "trunc"):
    _of_values(_name)


@_rule("pow", "__pow__")
def _pow(s, exponent):
    if not isinstance(exponent, numbers.Number) or not exponent > 0:
        raise NotImplementedError(f"a sparse tensor to the power of {exponent}: expected a number above 0")
    s = s.coalesce()
    return s._with(s._entries ** exponent)


@_rule("neg", "__neg__", "negative")
def _neg(s):
    return s._with(-s._entries)


def _conversion(name):
    def function(s, *args, **kwargs):
        entries = getattr(s._entries, name)(*args, **kwargs)
        if entries is s._entries:
            return s
        return _make(s._places.to(entries.device), entries, s.shape, s._is_coalesced)

    RULES[name] = function


for _name in ("to", "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool",
              "cpu",
              "cuda"):
    _conversion(_name)


def _rows(s, dims):
    """The places along some of the sparse dimensions."""
    return _C.stack([s._places[d] for d in dims])


# Sums and products.
def _is_scalar(x):
    return isinstance(x, numbers.Number) or (isinstance(x, Tensor) and not is_sparse(x) and x.dim() == 0)


@_rule("mul", "multiply", "__mul__", "__rmul__")
def _mul(a, b):
    s, other = (a, b) if is_sparse(a) else (b, a)
    if _is_scalar(other):
        return s._with(s._entries * other)
    if is_sparse(other):
        s, other = s.coalesce(), other.to_dense()
    shape = flambeau.broadcast_shapes(s.shape, other.shape)
    if tuple(shape) != tuple(s.shape):
        raise NotImplementedError(f"the product of a sparse tensor of shape {tuple(s.shape)} and one of "
                                  f"shape {tuple(other.shape)}: the sparse one would have to grow")
    return s._with(s._entries * other.expand(shape)[tuple(s._places.unbind(0))])


@_rule("div", "divide", "true_divide", "__truediv__")
def _div(s, other):
    if not is_sparse(s) or not _is_scalar(other):
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor")
    return s._with(s._entries / other)


@_rule("add", "__add__", "__radd__")
def _add(a, b, *, alpha=1):
    if not is_sparse(a):
        if not isinstance(a, Tensor) or tuple(a.shape) != tuple(b.shape):
            raise RuntimeError("add: expected a dense tensor of the sparse one's shape, or two sparse ones")
        values = b._entries if alpha == 1 else b._entries * alpha
        dtype = flambeau.result_type(a, values)
        return a.to(dtype).index_put(tuple(b._places.unbind(0)), values.to(dtype), accumulate=True)
    if not is_sparse(b):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if tuple(a.shape) != tuple(b.shape) or a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(f"add: expected sparse tensors of one shape, got {tuple(a.shape)} and "
                           f"{tuple(b.shape)}")
    dtype = flambeau.promote_types(a.dtype, b.dtype)
    values = [a._entries.to(dtype), (b._entries if alpha == 1 else b._entries * alpha).to(dtype)]
    return _make(_C.cat([a._places, b._places], 1), _C.cat(values), a.shape)


@_rule("sub", "subtract", "__sub__")
def _sub(a, b, *, alpha=1):
    return _add(a, b, alpha=-alpha)


@_rule("__rsub__")
def _rsub(a, b):
    return _sub(b, a)


@_rule("mm", "matmul", "__matmul__", "mv", "spmm", "dsmm")
def mm(a, b):
    """A product of matrices, or of a matrix and a vector. Of two sparse ones: sparse."""
    if not is_sparse(a):
        return mm(b.t(), a.t() if a.dim() == 2 else a).t()
    if is_sparse(b):
        return from_dense(mm(a, b.to_dense()))
    if a.dim() != 2 or a.sparse_dim() != 2 or b.dim() not in (1, 2):
        raise NotImplementedError(f"the product of a sparse tensor of {a.dim()} dimensions and one of "
                                  f"{b.dim()}: expected a matrix, and a matrix or vector")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and "
                           f"{'x'.join(map(str, b.shape))})")
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected mat1 and mat2 to have the same dtype, but got: {a.dtype} != {b.dtype}")
    rows, columns = a._places.unbind(0)
    entries = a._entries if b.dim() == 1 else a._entries.unsqueeze(1)
    return b.new_zeros((a.shape[0], *b.shape[1:])).index_add(0, rows, entries * b[columns])


@_rule("__rmatmul__")
def _rmatmul(b, a):
    return mm(a, b)


@_rule("addmm", "sspaddmm")
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta input + alpha mat1 @ mat2."""
    product = mm(mat1, mat2)
    return input * beta + product * alpha


@_rule("linear")
def _linear(input, weight, bias=None):
    product = mm(input, weight.t())
    return product if bias is None else product + bias


# In place.
def _become(s, other):
    """s has the places and values of another sparse tensor from now on, in its own dtype."""
    if tuple(s.shape) != tuple(other.shape):
        raise RuntimeError(f"a sparse tensor of shape {tuple(s.shape)} can't become one of "
                           f"{tuple(other.shape)}")
    s._places, s._entries = other._places, other._entries.to(s.device, s._entries.dtype)
    s._is_coalesced = other._is_coalesced
    return s


@_rule("copy_")
def _copy_(s, other, non_blocking=False):
    if not (is_sparse(s) and is_sparse(other)):
        raise RuntimeError("copy_() between dense and sparse tensors is not supported: to_dense() or "
                           "to_sparse() one")
    return _become(s, other.clone())


@_rule("zero_")
def _zero_(s):
    return _become(s, _zeros_like(s))


@_rule("mul_", "__imul__")
def _mul_(s, other):
    return _become(s, _mul(s, other))


@_rule("div_", "__itruediv__")
def _div_(s, other):
    return _become(s, _div(s, other))


@_rule("add_", "__iadd__")
def _add_(a, b, *, alpha=1):
    """Where a is dense, only the elements at b's places change."""
    if is_sparse(a):
        return _become(a, _add(a, b, alpha=alpha))
    if tuple(a.shape) != tuple(b.shape):
        raise RuntimeError(f"add_: expected a dense tensor of the sparse one's shape, got {tuple(a.shape)} "
                           f"and {tuple(b.shape)}")
    values = (b._entries * alpha).to(a.dtype)
    return a.index_put_(tuple(b._places.unbind(0)), values, accumulate=True)


@_rule("sub_", "__isub__")
def _sub_(a, b, *, alpha=1):
    return _add_(a, b, alpha=-alpha)


# Shapes.
@_rule("transpose", "swapaxes", "swapdims")
def _transpose(s, dim0, dim1):
    a, b = dim0 % s.dim(), dim1 % s.dim()
    if a == b:
        return s
    if max(a, b) >= s.sparse_dim():
        raise NotImplementedError("transpose() of a sparse tensor's dense dimensions")
    order = list(range(s.dim()))
    order[a], order[b] = b, a
    return _permute(s, order)


@_rule("permute")
def _permute(s, *dims):
    dims = [d % s.dim() for d in (dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)]
    count = s.sparse_dim()
    if sorted(dims[:count]) != list(range(count)):
        raise NotImplementedError("permute() between a sparse tensor's sparse and dense dimensions")
    entries = s._entries.permute(0, *(d - count + 1 for d in dims[count:]))
    return _make(_rows(s, dims[:count]), entries, [s.shape[d] for d in dims],
                 s._is_coalesced and dims[:count] == list(range(count)))


@_rule("t", "T", "mT")
def _t(s):
    return s if s.dim() < 2 else _transpose(s, -2, -1)


@_rule("select", "__getitem__")
def _select(s, dim, index=None):
    if index is None:
        dim, index = 0, dim
    if not isinstance(index, int):
        raise NotImplementedError("a sparse tensor is indexed by one int; select() and index_select() take "
                                  "dimensions")
    dim = dim % s.dim()
    if not -s.shape[dim] <= index < s.shape[dim]:
        raise IndexError(f"index {index} is out of range for a dimension of size {s.shape[dim]}")
    shape = [n for d, n in enumerate(s.shape) if d != dim]
    if dim >= s.sparse_dim():
        return _make(s._places, s._entries.select(dim - s.sparse_dim() + 1, index), shape, s._is_coalesced)
    s = s.coalesce()
    here = (s._places[dim] == index % s.shape[dim]).nonzero().squeeze(1)
    others = [d for d in range(s.sparse_dim()) if d != dim]
    if not others:
        return s._entries[here].sum(0)
    return _make(_rows(s, others)[:, here], s._entries[here], shape, True)


@_rule("index_select")
def _index_select(s, dim, index):
    dim = dim % s.dim()
    if dim >= s.sparse_dim():
        entries = s._entries.index_select(dim - s.sparse_dim() + 1, index)
        shape = [len(index) if d == dim else n for d, n in enumerate(s.shape)]
        return _make(s._places, entries, shape, s._is_coalesced)
    s = s.coalesce()
    place, entry = (s._places[dim] == index.unsqueeze(1)).nonzero().unbind(1)
    places = s._places[:, entry].index_copy(0, _C.tensor([dim]).to(s.device), place.unsqueeze(0))
    shape = [len(index) if d == dim else n for d, n in enumerate(s.shape)]
    return _make(places, s._entries[entry], shape).coalesce()


@_rule("cat", "concat", "concatenate")
def _cat(tensors, dim=0):
    if not all(is_sparse(t) and t.sparse_dim() == tensors[0].sparse_dim() for t in tensors):
        raise RuntimeError("cat: expected all tensors to be sparse, with as many sparse dimensions")
    first = tensors[0]
    dim, start, places = dim % first.dim(), 0, []
    if dim >= first.sparse_dim():
        raise NotImplementedError("cat() along a dense dimension of sparse tensors")
    shift = _C.zeros((first.sparse_dim(), 1), dtype=_C.int64, device=first.device)
    for t in tensors:
        shift[dim] = start
        places.append(t._places + shift)
        start += t.shape[dim]
    shape = [start if d == dim else n for d, n in enumerate(first.shape)]
    return _make(_C.cat(places, 1), _C.cat([t._entries for t in tensors]), shape)


@_rule("zeros_like")
def _zeros_like(s, *, dtype=None, **options):
    return _make(s._places[:, :0], s._entries[:0].detach().to(dtype or s.dtype), s.shape, True)


# Reductions.
@_rule("sum")
def sum(s, dim=None, keepdim=False, *, dtype=None):
    """The sum of all elements, or along dimensions: sparse, unless no sparse dimension is left."""
    if keepdim:
        raise NotImplementedError("sum(keepdim=True) of a sparse tensor")
    if dtype is not None:
        s = s.to(dtype)
    dims = range(s.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = {d % s.dim() for d in dims}
    count = s.sparse_dim()
    dense = [d - count + 1 for d in dims if d >= count]
    entries = s._entries.sum(dense) if dense else s._entries
    left = [d for d in range(count) if d not in dims]
    if not left:
        return entries.sum(0)
    return _make(_rows(s, left), entries, [n for d, n in enumerate(s.shape) if d not in dims]).coalesce()


@_rule("norm", "linalg_vector_norm")
def _norm(s, p="fro", dim=None, keepdim=False, dtype=None):
    if dim is not None:
        raise NotImplementedError("norm() along a dimension of a sparse tensor")
    return s.coalesce()._entries.norm(2 if p == "fro" else p, dtype=dtype)


@_rule("any")
def _any(s):
    return (s.coalesce()._entries != 0).any()


@_rule("log_softmax")
def log_softmax(s, dim, dtype=None):
    """The logarithm of softmax() among the elements that are there."""
    s = (s if dtype is None else s.to(dtype)).coalesce()
    dim = dim % s.dim()
    if dim >= s.sparse_dim():
        return s._with(s._entries.log_softmax(dim - s.sparse_dim() + 1))
    row = _C.zeros((s._nnz(),), dtype=_C.int64, device=s.device)
    for d in range(s.sparse_dim()):
        if d != dim:
            row = row * s.shape[d] + s._places[d]
    row = flambeau.unique(row, return_inverse=True)[1] if s._nnz() else row
    shape = (s._nnz(), *s._entries.shape[1:])
    values = s._entries.detach()
    largest = values.new_full(shape, -math.inf).index_reduce(0, row, values, "amax")[row]
    off = s._entries - largest
    return s._with(off - off.new_zeros(shape).index_add(0, row, off.exp())[row].log())


@_rule("softmax")
def softmax(s, dim, dtype=None):
    """Along a dimension, among the elements that are there."""
    logs = log_softmax(s, dim, dtype)
    return logs._with(logs._entries.exp())
