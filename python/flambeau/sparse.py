"""Sparse tensors: of mostly zeros, such as graphs' adjacency matrices, and gradients of few rows.

A sparse tensor in coordinate form is its indices (one row for each sparse dimension) and its values, which
may have dimensions of their own; matrices by compressed rows or columns are in _sparse_compressed.py.
Gradients go through the values: a sparse tensor requires grad where they do, and its `.grad` has values at
the same places. Operators that do not take it say so; to_dense() gives a plain tensor.
"""
import importlib

import flambeau

from . import _C, _utils
from ._aliases import ALIASES
from ._C import Tensor

__all__ = ["SparseTensor", "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax",
           "mm", "sampled_addmm", "softmax", "sparse_coo_tensor", "sum"]

# What describes a tensor without its elements.
_DESCRIBES = frozenset((
    "__len__", "dim", "ndimension", "numel", "nelement", "size", "is_floating_point", "is_complex",
    "is_signed",
    "element_size", "get_device", "shape", "dtype", "device", "ndim", "is_leaf", "grad", "grad_fn",
    "itemsize",
    "is_cuda", "is_cpu", "is_meta", "is_quantized", "is_nested", "requires_grad", "names", "retains_grad",
    "_backward_hooks", "is_inference", "output_nr", "_version"))


class SparseTensor(Tensor):
    """What sparse_coo_tensor() makes. coalesce(): each place once, in order; to_dense(): a plain tensor."""

    @staticmethod
    def make(indices, values, size, coalesced=False):
        with _C.DisableTorchFunctionSubclass():
            sparse = _C._make_wrapper_subclass(SparseTensor, tuple(size), dtype=values.dtype,
                                               device=values.device)
        sparse._places, sparse._entries, sparse._is_coalesced = indices, values, coalesced
        return sparse

    def _with(self, values):
        """Other values at the same places."""
        return SparseTensor.make(self._places, values, self.shape, self._is_coalesced)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = func.__name__
        if name in ("__get__", "__set__"):
            name = func.__self__.__name__
        rules = importlib.import_module("._sparse_rules", __package__).RULES
        rule = rules.get(name) or rules.get(ALIASES.get(name))
        if rule is not None:
            return rule(*args, **(kwargs or {}))
        if name not in _DESCRIBES:
            raise NotImplementedError(f"{name}() does not take sparse tensors; to_dense() makes them plain "
                                      "ones")
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    is_sparse = property(lambda self: True)
    layout = property(lambda self: _C.sparse_coo)
    is_leaf = property(lambda self: self._entries.is_leaf)
    grad_fn = property(lambda self: self._entries.grad_fn)

    @property
    def requires_grad(self):
        return self._entries.requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        self._entries.requires_grad = value

    @property
    def grad(self):
        """At the same places, where the values are a leaf that has one."""
        gradient = self._entries.grad
        return None if gradient is None else self._with(gradient)

    @grad.setter
    def grad(self, value):
        self._entries.grad = None if value is None else self._values_at_places(value)

    def _values_at_places(self, tensor):
        """The values of a tensor, dense or sparse, at the places of this one."""
        return tensor.to_dense()[tuple(self._places.unbind(0))]

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        if gradient is None:
            raise RuntimeError("grad can be implicitly created only for scalar outputs: give backward() of a "
                               "sparse tensor its gradient")
        self._entries.backward(self._values_at_places(gradient), retain_graph, create_graph, inputs)

    @staticmethod
    def _sum_of_gradients(a, b):
        """What the engine calls to add up gradients of a leaf, one of them sparse; a is None at first."""
        if a is None:
            return b.detach() if not b.requires_grad else b
        if not isinstance(a, SparseTensor) or not isinstance(b, SparseTensor):
            return b + a if isinstance(a, SparseTensor) else a + b
        if a._places.shape == b._places.shape and _C.equal(a._places, b._places):
            return a._with(a._entries + b._entries)
        return a + b

    def _indices(self):
        return self._places

    def _values(self):
        return self._entries.detach()

    def _checked(self):
        if not self._is_coalesced:
            raise RuntimeError("indices() and values() need coalesce() first: several entries may be at one "
                               "place")
        return self

    def indices(self):
        return self._checked()._places

    def values(self):
        return self._checked()._entries

    def is_coalesced(self):
        return self._is_coalesced

    def sparse_dim(self):
        return self._places.shape[0]

    def dense_dim(self):
        return self._entries.dim() - 1

    def _nnz(self):
        return self._places.shape[1]

    def coalesce(self):
        """Values of equal places added up, places in order."""
        if self._is_coalesced:
            return self
        flat = _C.zeros((self._nnz(),), dtype=_C.int64, device=self.device)
        for row, n in zip(self._places.unbind(0), self.shape):
            flat = flat * n + row
        places, which = (flambeau.unique(flat, sorted=True, return_inverse=True)[:2] if self._nnz()
                         else (flat, flat))
        values = _C.zeros((places.shape[0], *self._entries.shape[1:]),
                          dtype=self.dtype, device=self.device).index_add(0, which, self._entries)
        rows = []
        for n in reversed(self.shape[:self.sparse_dim()]):
            rows.insert(0, places % n)
            places = _C.div(places, n, rounding_mode="floor")
        return SparseTensor.make(_C.stack(rows), values, self.shape, True)

    def to_dense(self, dtype=None, *, masked_grad=None):
        at = tuple(self._places.unbind(0))
        zeros = _C.zeros(tuple(self.shape), dtype=self.dtype, device=self.device)
        dense = zeros.index_put(at, self._entries, accumulate=True)
        return dense if dtype is None else dense.to(dtype)

    def detach(self):
        return self._with(self._entries.detach())

    def clone(self, *, memory_format=None):
        return SparseTensor.make(self._places.clone(), self._entries.clone(), self.shape, self._is_coalesced)

    def requires_grad_(self, requires_grad=True):
        self._entries.requires_grad_(requires_grad)
        return self

    def numpy(self, *, force=False):
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        if layout in (None, self.layout):
            return self
        return self.coalesce() if layout is _C.sparse_coo else _compressed(self, layout)

    def to_sparse_coo(self):
        return self.to_sparse(layout=_C.sparse_coo)

    def to_sparse_csr(self, dense_dim=None):
        return self.to_sparse(layout=_C.sparse_csr)

    def to_sparse_csc(self, dense_dim=None):
        return self.to_sparse(layout=_C.sparse_csc)

    def __reduce_ex__(self, protocol):
        state = self._places, self._entries, self.shape, self._is_coalesced
        return _utils._rebuild_sparse_tensor, (_C.sparse_coo, state)

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), self.clone())

    def __repr__(self, *, tensor_contents=None):
        def part(name, tensor):
            return f"{name}={tensor.detach()}".replace("\n", "\n" + " " * (len(name) + 8))

        grad = ", requires_grad=True" if self.requires_grad else ""
        return (f"tensor({part('indices', self._places)},\n       {part('values', self._entries)},\n       "
                f"size={tuple(self.shape)}, nnz={self._nnz()}, layout=torch.sparse_coo{grad})")


def sparse_coo_tensor(indices=None, values=None, size=None, *, dtype=None, device=None, requires_grad=False,
                      check_invariants=None, is_coalesced=None):
    """A sparse tensor: values[k] at the place indices[:, k]; values of equal places are added. Of a size
    alone: zeros.
    """
    if values is None:
        size = indices if size is None else size
        indices, values = _C.zeros((len(size), 0), dtype=_C.int64), _C.zeros((0,), dtype=dtype)
        is_coalesced = True
    indices = (indices if isinstance(indices, Tensor) else _C.tensor(indices)).to(_C.int64)
    values = values if isinstance(values, Tensor) else _C.tensor(values)
    values = values.to(device or values.device, dtype or values.dtype)
    indices = indices.to(values.device)
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError("indices and values must have same nnz: sparse_coo_tensor(): expected indices of "
                           f"sizes (dimensions, {values.shape[0]}), got {tuple(indices.shape)}")
    if size is None:
        size = (*(int(row.max()) + 1 for row in indices.unbind(0)), *values.shape[1:])
    fits = len(size) == indices.shape[0] + values.dim() - 1
    if not fits or tuple(size[indices.shape[0]:]) != tuple(values.shape[1:]):
        raise RuntimeError(f"sparse_coo_tensor(): a size of {tuple(size)} does not fit {indices.shape[0]} "
                           f"sparse dimensions and values of shape {tuple(values.shape)}")
    if indices.shape[1] and (check_invariants or check_sparse_tensor_invariants.is_enabled()):
        _check_places(indices, size)
    made = SparseTensor.make(indices, values, size, bool(is_coalesced))
    return made.detach().requires_grad_() if requires_grad else made


def _compressed(tensor, layout):
    from ._sparse_compressed import compress

    return compress(tensor, layout)


def _check_places(indices, size):
    for dim, row in enumerate(indices.unbind(0)):
        low, high = int(row.min()), int(row.max())
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {dim}")
        if high >= size[dim]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but "
                               "found index "
                               f"{high}")


class check_sparse_tensor_invariants:
    """Whether sparse_coo_tensor() checks that its indices lie inside the size: enable(), or a context."""

    _enabled = False

    def __init__(self, enable=True):
        self._wanted, self._before = enable, None

    @classmethod
    def is_enabled(cls):
        return cls._enabled

    @classmethod
    def enable(cls):
        check_sparse_tensor_invariants._enabled = True

    @classmethod
    def disable(cls):
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self):
        self._before = self._enabled
        check_sparse_tensor_invariants._enabled = self._wanted
        return self

    def __exit__(self, *error):
        check_sparse_tensor_invariants._enabled = self._before


def as_sparse_gradcheck(gradcheck):
    """gradcheck itself: the functions that it is given take the values of sparse tensors."""
    return gradcheck


def mm(mat1, mat2, reduce="sum"):
    """A product of matrices, either or both of them sparse.

    reduce: what becomes of the products of an output's element, those of elements that are there: "sum",
    "mean", "amax", "amin".
    """
    if reduce == "sum":
        return _C.mm(mat1, mat2)
    if not isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor):
        raise RuntimeError(f"sparse.mm(reduce={reduce!r}): expected a sparse matrix and a dense one")
    if reduce not in ("mean", "amax", "amin"):
        raise ValueError(f"sparse.mm(): expected reduce to be sum, mean, amax or amin, got {reduce!r}")
    rows, columns = mat1._places.unbind(0)
    products = mat1._entries.unsqueeze(1) * mat2[columns]
    empty = mat2.new_zeros((mat1.shape[0], mat2.shape[1]))
    return empty.index_reduce(0, rows, products, reduce, include_self=False)


spmm = dsmm = mm


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """beta input + alpha mat1 @ mat2 at the places of a sparse input, and nowhere else."""
    if not isinstance(input, SparseTensor) or input.dim() != 2:
        raise RuntimeError("sampled_addmm(): expected a sparse matrix as input")
    if mat1.shape[1] != mat2.shape[0] or tuple(input.shape) != (mat1.shape[0], mat2.shape[1]):
        raise RuntimeError(f"sampled_addmm(): a product of {tuple(mat1.shape)} and {tuple(mat2.shape)} does "
                           f"not fit an input of {tuple(input.shape)}")
    rows, columns = input._places.unbind(0)
    products = (mat1[rows] * mat2.t()[columns]).sum(1)
    entries = products * alpha + input._entries * beta if beta else products * alpha
    result = input.detach().clone()._with(entries)
    return result if out is None else out.copy_(result)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """beta mat + alpha mat1 @ mat2, with a sparse mat1."""
    return _C.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input, dim=None, dtype=None):
    """The sum of all elements, or along dimensions: sparse, unless no sparse dimension is left."""
    return _C.sum(input, dtype=dtype) if dim is None else _C.sum(input, dim, dtype=dtype)


def softmax(input, dim, *, dtype=None):
    """Along a dimension, among the elements that are there: the others count as minus infinity."""
    return _C.softmax(input, dim, dtype)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of softmax()."""
    return _C.log_softmax(input, dim, dtype)


def _legacy(name, dtype):
    def make(indices=None, values=None, size=None):
        """A sparse tensor of this dtype, in the way before sparse_coo_tensor()."""
        return sparse_coo_tensor(indices, values, size, dtype=dtype)

    make.__name__ = name
    return make


FloatTensor, DoubleTensor = _legacy("FloatTensor", _C.float32), _legacy("DoubleTensor", _C.float64)
HalfTensor, BFloat16Tensor = _legacy("HalfTensor", _C.float16), _legacy("BFloat16Tensor", _C.bfloat16)
IntTensor, LongTensor = _legacy("IntTensor", _C.int32), _legacy("LongTensor", _C.int64)
