"""vmap(): a function of one sample as a function of a batch."""
import functools

from .. import _C, random
from .._C import Tensor
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

__all__ = ["vmap"]


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that calls func on every slice of its arguments along in_dims, and stacks the results.

    func runs once for each slice, with plain tensors: what it does is not limited, and it takes the time of
    as many calls. in_dims, out_dims: a number for all, or for each argument (result), in any nested form;
    None: not a batch. randomness: "different" or "same" draws in all calls, or "error" if func draws.
    chunk_size has no effect.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError("vmap(): expected randomness to be 'error', 'different' or 'same', got "
                           f"{randomness!r}")

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        leaves, structure = tree_flatten(args)
        dims = _in_dims(in_dims, args, leaves, structure)
        size = _batch_size(leaves, dims)
        more, more_structure = tree_flatten(kwargs)  # their tensors are batches along dimension 0
        for x in (x for x in more if isinstance(x, Tensor)):
            if x.dim() == 0 or x.size(0) != size:
                raise ValueError(f"vmap(): expected keyword arguments of size {size} along dimension 0, got "
                                 f"{tuple(x.shape)}")

        def call(k):
            mine = [x if d is None else _slice(x, d, k) for x, d in zip(leaves, dims)]
            named = [_slice(x, 0, k) if isinstance(x, Tensor) else x for x in more]
            return func(*tree_unflatten(mine, structure), **tree_unflatten(named, more_structure))

        return _stacked(_calls(call, max(size, 1), randomness), out_dims, size)

    return mapped


def _in_dims(in_dims, args, leaves, structure):
    """The batch dimension of every leaf of the arguments, None for none."""
    if not args:
        raise ValueError("vmap(): expected at least one positional argument, got none")
    given = tuple(in_dims) if isinstance(in_dims, list) else in_dims
    if not isinstance(given, (int, tuple)):
        raise ValueError("vmap(): expected in_dims to be an int or a tuple for the arguments, got "
                         f"{in_dims!r}")
    dims = _broadcast_to_and_flatten(given, structure, is_leaf=lambda x: x is None)
    if dims is None:
        raise ValueError(f"vmap(): in_dims={in_dims!r} has not the form of the arguments, {structure}")
    out = []
    for x, d in zip(leaves, dims):
        if d is not None and not isinstance(d, int):
            raise ValueError(f"vmap(): expected ints or None in in_dims, got {d!r}")
        if d is not None and not isinstance(x, Tensor):
            raise ValueError(f"vmap(): in_dims has {d} for an argument of type {type(x).__name__}, which is "
                             "no Tensor: use None there")
        if d is not None and not -x.dim() <= d < x.dim():
            raise ValueError(f"vmap(): in_dims has {d} for a tensor of {x.dim()} dimensions")
        out.append(d)
    return out


def _batch_size(leaves, dims):
    sizes = {x.size(d) for x, d in zip(leaves, dims) if d is not None}
    if not sizes:
        raise ValueError("vmap(): expected a batch dimension for at least one argument, in_dims has none")
    if len(sizes) > 1:
        raise ValueError(f"vmap(): expected all batch dimensions to have one size, got {sorted(sizes)}")
    return sizes.pop()


def _slice(x, dim, k):
    """Slice k; of an empty batch, a slice of zeros, for the results' shapes."""
    if x.size(dim) == 0:
        dim %= x.dim()
        return x.new_zeros((*x.shape[:dim], *x.shape[dim + 1:]))
    return x.select(dim, k)


def _calls(call, count, randomness):
    if randomness == "different":
        return [call(k) for k in range(count)]
    before, results = random.get_rng_state(), []
    for k in range(count):
        if randomness == "same" and k:
            random.set_rng_state(before)
        results.append(call(k))
        if randomness == "error" and not k and not _C.equal(before, random.get_rng_state()):
            raise RuntimeError("vmap(): the function draws random numbers; say randomness='different' (in "
                               "every call others) or 'same'")
    return results


def _stacked(results, out_dims, size):
    flat = [tree_flatten(r) for r in results]
    structure = flat[0][1]
    if any(s != structure for _, s in flat):
        raise ValueError("vmap(): the function's results have different forms for different slices")
    given = tuple(out_dims) if isinstance(out_dims, list) else out_dims
    dims = _broadcast_to_and_flatten(given, structure, is_leaf=lambda x: x is None)
    if dims is None and isinstance(given, tuple) and len(given) == 1 and structure.is_leaf():
        dims = list(given)
    if dims is None:
        raise ValueError(f"vmap(): out_dims={out_dims!r} has not the form of the results, {structure}")
    out = []
    for d, column in zip(dims, zip(*(leaves for leaves, _ in flat))):
        if not all(isinstance(x, Tensor) for x in column):
            kind = next(type(x) for x in column if not isinstance(x, Tensor))
            raise ValueError(f"vmap(): expected the function to return tensors, got {kind.__name__}")
        if d is None:
            out.append(column[0])
        else:
            out.append(_C.stack(list(column), d) if size else _C.stack([column[0]], d).narrow(d, 0, 0))
    return tree_unflatten(out, structure)
