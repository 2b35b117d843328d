"""Sparse matrices by compressed rows (CSR) or columns (CSC): where each row starts, the column of each value.

An operator works on their coordinates, as on other sparse tensors, and a sparse matrix that it gives is
compressed again.
"""
from . import _C, _utils
from ._C import Tensor
from .sparse import SparseTensor

# layout: the name of where rows (columns) start, and of the columns (rows) of the values.
_NAMES = {_C.sparse_csr: ("crow_indices", "col_indices"), _C.sparse_csc: ("ccol_indices", "row_indices")}


class CompressedTensor(SparseTensor):
    """What sparse_csr_tensor() and sparse_csc_tensor() make."""

    is_sparse = property(lambda self: False)
    is_sparse_csr = property(lambda self: self._layout is _C.sparse_csr)
    layout = property(lambda self: self._layout)

    @staticmethod
    def compressed(starts, others, values, size, layout):
        with _C.DisableTorchFunctionSubclass():
            made = _C._make_wrapper_subclass(CompressedTensor, tuple(size), dtype=values.dtype,
                                             device=values.device)
        made._starts, made._others, made._entries, made._layout = starts, others, values, layout
        made._is_coalesced = False  # the values of a row may be in any order
        return made

    @property
    def _places(self):
        count = self._starts.shape[0] - 1
        along = _C.arange(count, device=self.device).repeat_interleave(self._starts.diff())
        rows = [along, self._others.to(_C.int64)]
        return _C.stack(rows if self._layout is _C.sparse_csr else rows[::-1])

    def _with(self, values):
        return self.compressed(self._starts, self._others, values, self.shape, self._layout)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs)
        layout = next((a._layout for a in args if isinstance(a, CompressedTensor)), _C.sparse_csr)
        if type(result) is SparseTensor and result.dim() == 2:
            if func.__name__ in ("t", "transpose", "permute") or getattr(func, "__self__", None) in _TURNED:
                layout = _C.sparse_csc if layout is _C.sparse_csr else _C.sparse_csr
            return compress(result, layout)
        return result

    def _part(self, name, rows):
        wanted = _C.sparse_csr if rows else _C.sparse_csc
        if self._layout is not wanted:
            raise RuntimeError(f"{name} expected sparse {'row' if rows else 'column'} compressed tensor "
                               f"layout but got {str(self._layout)[6:]}")
        return self._starts if name.startswith("c") and name != "col_indices" else self._others

    def crow_indices(self):
        return self._part("crow_indices", True)

    def col_indices(self):
        return self._part("col_indices", True)

    def ccol_indices(self):
        return self._part("ccol_indices", False)

    def row_indices(self):
        return self._part("row_indices", False)

    def values(self):
        return self._entries

    def indices(self):
        raise RuntimeError("indices expected sparse coordinate tensor layout but got "
                           f"{str(self._layout)[6:]}")

    _indices = indices

    def sparse_dim(self):
        return 2

    def _nnz(self):
        return self._others.shape[0]

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        if layout is self._layout:
            return self
        coordinates = self.coalesce()
        return coordinates if layout in (None, _C.sparse_coo) else compress(coordinates, layout)

    def clone(self, *, memory_format=None):
        return self.compressed(self._starts.clone(), self._others.clone(), self._entries.clone(), self.shape,
                               self._layout)

    def __reduce_ex__(self, protocol):
        return _utils._rebuild_sparse_tensor, (
            self._layout, (self._starts, self._others, self._entries, self.shape))

    def __repr__(self, *, tensor_contents=None):
        def part(name, tensor):
            return f"{name}={tensor.detach()}".replace("\n", "\n" + " " * (len(name) + 8))

        starts, others = _NAMES[self._layout]
        grad = ", requires_grad=True" if self.requires_grad else ""
        return (f"tensor({part(starts, self._starts)},\n       {part(others, self._others)},\n       "
                f"{part('values', self._entries)}, size={tuple(self.shape)}, nnz={self._nnz()},\n       "
                f"layout={self._layout}{grad})")


# The properties that turn a matrix.
_TURNED = (Tensor.T, Tensor.mT)


def compress(tensor, layout):
    """A sparse matrix in coordinate form, or another compressed one, by rows or columns."""
    if layout not in _NAMES:
        raise NotImplementedError(f"sparse tensors of layout {layout}: only torch.sparse_coo, sparse_csr and "
                                  "sparse_csc")
    if tensor.dim() != 2 or tensor.sparse_dim() != 2:
        raise NotImplementedError(f"a sparse tensor of {tensor.dim()} dimensions, {tensor.sparse_dim()} of "
                                  f"them sparse, as {layout}: only matrices")
    tensor = tensor.coalesce()
    (along, others), values = tensor._places.unbind(0), tensor._entries
    count = tensor.shape[0]
    if layout is _C.sparse_csc:
        order = others.argsort(stable=True)
        along, others, values, count = others[order], along[order], values[order], tensor.shape[1]
    starts = _C.zeros((count + 1,), dtype=_C.int64, device=tensor.device)
    starts[1:] = _C.bincount(along, minlength=count).cumsum(0)
    return CompressedTensor.compressed(starts, others, values, tensor.shape, layout)


def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None,
                             device=None, pin_memory=False, requires_grad=False, check_invariants=None):
    """A sparse matrix: values, and where each row (column) starts; layout torch.sparse_csr or sparse_csc."""
    if layout not in _NAMES:
        raise NotImplementedError(f"sparse_compressed_tensor(layout={layout}): only torch.sparse_csr and "
                                  "torch.sparse_csc")
    starts_name, others_name = _NAMES[layout]
    values = values if isinstance(values, Tensor) else _C.tensor(values)
    values = values.to(device or values.device, dtype or values.dtype)
    starts, others = ((i if isinstance(i, Tensor) else _C.tensor(i)).to(values.device)
                      for i in (compressed_indices, plain_indices))
    if starts.dim() != 1 or others.dim() != 1 or values.dim() != 1:
        raise NotImplementedError(f"{starts_name}, {others_name} and values of {starts.dim()}, "
                                  f"{others.dim()} and {values.dim()} dimensions: only single matrices of "
                                  "numbers")
    if others.shape != values.shape:
        raise RuntimeError(f"number of values must be equal to the number of {others_name}, but got "
                           f"{values.shape[0]} and {others.shape[0]}")
    if size is None:
        size = [starts.shape[0] - 1, int(others.max()) + 1 if others.shape[0] else 0]
        size = size if layout is _C.sparse_csr else size[::-1]
    count, bound = size if layout is _C.sparse_csr else tuple(size)[::-1]
    if starts.shape[0] != count + 1:
        raise RuntimeError(f"{starts_name}.shape[-1] must be equal to the number of "
                           f"{'rows' if layout is _C.sparse_csr else 'columns'} plus one, {count + 1}, but "
                           f"got {starts.shape[0]}")
    if int(starts[0]) or int(starts[-1]) != values.shape[0] or bool((starts.diff() < 0).any()):
        raise RuntimeError(f"{starts_name} must go up from 0 to the number of values, {values.shape[0]}")
    if others.shape[0] and not 0 <= int(others.min()) <= int(others.max()) < bound:
        raise RuntimeError(f"{others_name} must lie between 0 and {bound - 1}")
    made = CompressedTensor.compressed(starts, others, values, size, layout)
    return made.detach().requires_grad_() if requires_grad else made


def sparse_csr_tensor(crow_indices, col_indices, values, size=None, **options):
    """A sparse matrix: row i has values[crow_indices[i]:crow_indices[i + 1]], at the columns col_indices."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=_C.sparse_csr, **options)


def sparse_csc_tensor(ccol_indices, row_indices, values, size=None, **options):
    """A sparse matrix: column i has values[ccol_indices[i]:ccol_indices[i + 1]], at the rows row_indices."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=_C.sparse_csc, **options)
