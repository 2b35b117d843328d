"""Rows of a table, by number."""
import warnings

import flambeau as fl

__all__ = ["embedding", "embedding_bag", "one_hot"]


def one_hot(tensor, num_classes=-1):
    """1 at the class of each element along a new last dimension, 0 elsewhere.

    num_classes -1: as many classes as there are.
    """
    if num_classes == -1 and tensor.dtype == fl.int64:
        if tensor.numel() == 0:
            raise RuntimeError("one_hot(): an empty tensor has no classes to count; pass 'num_classes'")
        if int(tensor.min()) < 0:
            raise RuntimeError("one_hot(): the classes must be at least 0")
        num_classes = int(tensor.max()) + 1
    return fl.one_hot(tensor, num_classes)


def _row(padding_idx, weight):
    """padding_idx from the front; None is -1."""
    if padding_idx is None:
        return -1
    if not -weight.size(0) <= padding_idx < weight.size(0):
        raise AssertionError(f"'padding_idx' must be one of the {weight.size(0)} rows, got {padding_idx}")
    return padding_idx if padding_idx >= 0 else padding_idx + weight.size(0)


def _renormalize(weight, indices, max_norm, norm_type):
    """Rows that are used and longer than max_norm are shortened to it, in place."""
    with fl.no_grad():
        rows = fl.unique(indices)
        used = weight.index_select(0, rows)
        norms = used.norm(norm_type, 1, keepdim=True)
        factors = fl.where(norms > max_norm, max_norm / (norms + 1e-7), fl.ones_like(norms))
        weight.index_copy_(0, rows, used * factors)


class _RowsOfLeaf(fl.autograd.Function):
    """The rows of a table, whose gradient is sparse: the rows that were taken."""

    @staticmethod
    def forward(ctx, weight, input, padding_idx):
        ctx.save_for_backward(input)
        ctx.size, ctx.padding_idx = weight.shape, padding_idx
        return fl.embedding(weight, input)

    @staticmethod
    def backward(ctx, g):
        (input,) = ctx.saved_tensors
        rows, values = input.reshape(-1), g.reshape(-1, g.shape[-1])
        if ctx.padding_idx >= 0:
            counts = rows != ctx.padding_idx
            rows, values = rows[counts], values[counts]
        return fl.sparse_coo_tensor(rows.unsqueeze(0), values, ctx.size), None, None


def _gives_sparse_gradient(weight, scale_grad_by_freq):
    """Whether a gradient goes to the table itself; through operators it is dense."""
    if not (weight.requires_grad and weight.is_leaf and fl.is_grad_enabled()):
        return False
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    return True


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
              sparse=False):
    """weight[input]. The row padding_idx gets no gradient. sparse: the gradient of a leaf is sparse."""
    padding_idx = _row(padding_idx, weight)
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    if sparse and _gives_sparse_gradient(weight, scale_grad_by_freq):
        return _RowsOfLeaf.apply(weight, input, padding_idx)
    return fl.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False,
                  mode="mean", sparse=False, per_sample_weights=None, include_last_offset=False,
                  padding_idx=None):
    """The sum, mean or maximum of the rows that each bag names.

    A bag is a row of a 2-dim input, or what lies between offsets in a 1-dim one. per_sample_weights multiply
    the rows (sum only); rows padding_idx do not count.
    """
    if weight.dtype == fl.int64 and input.is_floating_point():
        warnings.warn("embedding_bag(): 'weight' came before 'input', an old order that is deprecated; write "
                      "embedding_bag(input, weight, ...).", stacklevel=2)
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError("embedding_bag(): 'per_sample_weights' must have the input's shape "
                         f"{tuple(input.shape)}, got {tuple(per_sample_weights.shape)}")
    if weight.dim() != 2:
        raise ValueError(f"embedding_bag(): 'weight' must have 2 dimensions, it has {weight.dim()}")
    input, offsets, per_sample_weights = _flat_bags(input, offsets, per_sample_weights)
    if mode not in _BAG_MODES:
        raise ValueError(f"embedding_bag(): 'mode' must be 'sum', 'mean' or 'max', got {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("embedding_bag(): 'scale_grad_by_freq' does not go with mode='max'")
    if mode == "max" and sparse:
        raise ValueError("embedding_bag(): 'sparse' does not go with mode='max'")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag(): 'per_sample_weights' goes with mode='sum' only, "
                                  f"got mode='{mode}'.")
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    padding_idx = -1 if padding_idx is None else _row(padding_idx, weight)
    if sparse and _gives_sparse_gradient(weight, scale_grad_by_freq):
        weight, input, padding_idx = _one_row_each(weight, input, padding_idx)
    return fl.embedding_bag(weight, input, offsets, scale_grad_by_freq, _BAG_MODES[mode], sparse,
                            per_sample_weights, include_last_offset, padding_idx)[0]


def _one_row_each(weight, input, padding_idx):
    """A table with a row for each number in input, the numbers of these rows, and what says padding there."""
    rows = _RowsOfLeaf.apply(weight, input, padding_idx)
    numbers = fl.arange(input.numel(), device=input.device)
    if padding_idx < 0:
        return rows, numbers, -1
    rows = fl.cat([rows, rows.new_zeros((1, rows.shape[1]))])
    return rows, numbers.masked_fill(input == padding_idx, input.numel()), input.numel()


def _flat_bags(input, offsets, per_sample_weights):
    """The bags one after the other, and where each starts."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("embedding_bag(): each row of a 2-dim 'input' is a bag, so 'offsets' must be "
                             f"None; got {type(offsets)}")
        length = max(input.size(1), 1)
        offsets = fl.arange(0, input.numel(), length, dtype=input.dtype, device=input.device)
        weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
        return input.reshape(-1), offsets, weights
    if input.dim() != 1:
        raise ValueError(f"embedding_bag(): 'input' must have 1 or 2 dimensions, it has {input.dim()}")
    if offsets is None:
        raise ValueError("embedding_bag(): a 1-dim 'input' needs 'offsets', a 1-dim tensor; got None")
    if offsets.dim() != 1:
        raise ValueError(f"embedding_bag(): 'offsets' must have 1 dimension, it has {offsets.dim()}")
    return input, offsets, per_sample_weights
