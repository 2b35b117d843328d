"""Sparse tensors in coordinate form, as far as optimizers need them: gradients that name few rows.

A sparse tensor is its indices (one row for each sparse dimension) and its values; operators other than the
methods here do not take it.
"""
import flambeau

from . import _C
from ._C import Tensor

__all__ = ["SparseTensor", "sparse_coo_tensor"]


class SparseTensor(Tensor):
    """What sparse_coo_tensor() makes. coalesce(): each place once, in order; to_dense(): a plain tensor."""

    @staticmethod
    def make(indices, values, size, coalesced=False):
        sparse = _C._make_wrapper_subclass(SparseTensor, tuple(size), dtype=values.dtype)
        sparse._places, sparse._entries, sparse._is_coalesced = indices, values, coalesced
        return sparse

    is_sparse = property(lambda self: True)
    layout = property(lambda self: _C.sparse_coo)

    def _indices(self):
        return self._places

    def _values(self):
        return self._entries

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
        flat = _C.zeros((self._nnz(),), dtype=_C.int64)
        for row, n in zip(self._places.unbind(0), self.shape):
            flat = flat * n + row
        places, which = (flambeau.unique(flat, sorted=True, return_inverse=True)[:2] if self._nnz()
                         else (flat, flat))
        values = _C.zeros((places.shape[0], *self._entries.shape[1:]),
                          dtype=self.dtype).index_add(0, which, self._entries)
        rows = []
        for n in reversed(self.shape[:self.sparse_dim()]):
            rows.insert(0, places % n)
            places = _C.div(places, n, rounding_mode="floor")
        return SparseTensor.make(_C.stack(rows), values, self.shape, True)

    def to_dense(self, dtype=None, *, masked_grad=None):
        at = tuple(self._places.unbind(0))
        dense = _C.zeros(tuple(self.shape), dtype=self.dtype).index_put(at, self._entries, accumulate=True)
        return dense if dtype is None else dense.to(dtype)

    def detach(self):
        return SparseTensor.make(self._places, self._entries.detach(), self.shape, self._is_coalesced)

    def clone(self, *, memory_format=None):
        return SparseTensor.make(self._places.clone(), self._entries.clone(), self.shape, self._is_coalesced)

    def __neg__(self):
        return SparseTensor.make(self._places, -self._entries, self.shape, self._is_coalesced)

    def __repr__(self, *, tensor_contents=None):
        return (f"tensor(indices={self._places},\n       values={self._entries},\n       "
                f"size={tuple(self.shape)}, nnz={self._nnz()}, layout=torch.sparse_coo)")


def sparse_coo_tensor(indices, values, size=None, *, dtype=None, device=None, requires_grad=False,
                      check_invariants=None, is_coalesced=None):
    """A sparse tensor: values[k] at the place indices[:, k]; values of equal places are added."""
    indices = (indices if isinstance(indices, Tensor) else _C.tensor(indices)).to(_C.int64)
    values = values if isinstance(values, Tensor) else _C.tensor(values)
    values = values if dtype is None else values.to(dtype)
    if indices.dim() != 2 or indices.shape[1] != values.shape[0]:
        raise RuntimeError(f"sparse_coo_tensor(): expected indices of sizes (dimensions, {values.shape[0]}), "
                           f"got {tuple(indices.shape)}")
    if size is None:
        size = (*(int(row.max()) + 1 for row in indices.unbind(0)), *values.shape[1:])
    if requires_grad:
        raise NotImplementedError("sparse_coo_tensor(): sparse tensors that require grad are not supported")
    return SparseTensor.make(indices, values, size, bool(is_coalesced))
