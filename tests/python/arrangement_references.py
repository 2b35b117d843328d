"""References of operators that copy, stack, split, count and order: they complete the table of references.py."""
import itertools
import math

import numpy as np


def copies(references):
    """A view's reference is that of its copy."""
    for copy, view in {
        "permute_copy": "permute", "transpose_copy.int": "transpose.int", "t_copy": "t", "expand_copy": "expand",
        "squeeze_copy": "squeeze", "squeeze_copy.dim": "squeeze.dim", "squeeze_copy.dims": "squeeze.dims",
        "unsqueeze_copy": "unsqueeze", "view_copy": "view", "view_as_real_copy": "view_as_real",
        "view_as_complex_copy": "view_as_complex", "diagonal_copy": "diagonal", "narrow_copy": "narrow",
        "select_copy.int": "select.int", "slice_copy.Tensor": "slice.Tensor", "unfold_copy": "unfold",
        "split_copy.Tensor": "split.Tensor", "split_with_sizes_copy": "split_with_sizes", "unbind_copy.int": "unbind.int",
        "unsafe_chunk": "chunk", "unsafe_split.Tensor": "split.Tensor", "unsafe_split_with_sizes": "split_with_sizes",
        "trapz.dx": "trapezoid.dx", "var_mean.dim": "var_mean", "std_mean.dim": "std_mean",
        "_remainder": "remainder.Tensor", "_fmod": "fmod.Tensor",
    }.items():
        if view in references and not copy.endswith("mean.dim"):
            references.setdefault(copy, references[view])


def bins(x, edges, weight=None, density=False):
    return np.histogram(x.reshape(-1), edges, weights=None if weight is None else weight.reshape(-1), density=density)


def bins_of(x, count, span, weight, density):
    edges = np.linspace(*(span or (x.min(), x.max())), count + 1)
    return bins(x, edges, weight, density)[0], edges


def grid(x, edges, weight, density):
    hist, edges = np.histogramdd(x, edges, weights=weight, density=density)
    return hist, tuple(edges)


def even_grid(x, counts, span, weight, density):
    counts = [counts] * x.shape[1] if isinstance(counts, int) else counts
    return grid(x, [np.linspace(x[:, d].min(), x[:, d].max(), n + 1) for d, n in enumerate(counts)], weight, density)


def histc(x, count, low, high):
    low, high = (x.min(), x.max()) if low == high else (low, high)
    return np.histogram(x, count, (low, high))[0]


def quantile(x, q, dim, keepdim, how):
    return np.quantile(x, q, axis=dim if x.ndim else None, method=how, keepdims=keepdim and x.ndim > 0)


def picked(x, dim, keepdim, position):
    """An entry of each line, and where it first stands: what is compared is the element."""
    if x.ndim == 0:
        return x, np.array(0)
    index = np.expand_dims(position, dim)
    out = np.take_along_axis(x, index, dim), index
    return out if keepdim else tuple(np.squeeze(o, dim) for o in out)


def nanmedian(x, dim, keepdim):
    if x.ndim == 0:
        return x, np.array(0)
    order = np.argsort(x, axis=dim, kind="stable")
    middle = (x.shape[dim] - 1) // 2
    return picked(x, dim, keepdim, np.take(order, middle, dim))


def mode(x, dim, keepdim):
    if x.ndim == 0:
        return x, np.array(0)

    def line(v):
        values, counts = np.unique(v, return_counts=True)
        return np.flatnonzero(v == values[np.argmax(counts)])[-1]

    return picked(x, dim, keepdim, np.apply_along_axis(line, dim, x))


def runs(x, return_inverse, return_counts, dim=None):
    none = np.zeros(0, np.int64)
    rows = x.reshape(-1) if dim is None else np.moveaxis(x, dim, 0)
    flat = rows.reshape(len(rows), -1) if len(rows) else rows.reshape(0, 1)
    starts = np.r_[np.ones(min(len(rows), 1), bool), (flat[1:] != flat[:-1]).any(1)]
    inverse = np.cumsum(starts) - 1
    counts = np.bincount(inverse) if len(rows) else none
    values = rows[starts] if dim is None else np.moveaxis(rows[starts], 0, dim)
    inverse = inverse.reshape(x.shape) if dim is None else inverse
    return values, inverse if return_inverse else none, counts if return_counts else none


def distinct(x, dim, in_order, return_inverse, return_counts):
    none = np.zeros(0, np.int64)
    values, inverse, counts = np.unique(x, axis=dim, return_inverse=True, return_counts=True)
    return values, inverse.reshape(-1) if return_inverse else none, counts if return_counts else none


def widths(y, x, dim):
    if x.ndim == 1 and y.ndim > 1:
        x = x.reshape([-1 if d == dim % y.ndim else 1 for d in range(y.ndim)])
    return np.diff(x, axis=dim)


def strips(y, dim, width):
    n = y.shape[dim]
    return (np.take(y, range(1, n), dim) + np.take(y, range(n - 1), dim)) * width / 2


def slopes(x, spacing, dims, order):
    dims = range(x.ndim) if dims is None else [dims] if isinstance(dims, int) else dims
    spacing = [1 if spacing is None else spacing] * len(dims) if not isinstance(spacing, (list, tuple)) else spacing
    return tuple(np.gradient(x, s, axis=d, edge_order=order) for s, d in zip(spacing, dims))


def renorm(x, p, dim, limit):
    norms = (np.abs(x) ** p).sum(tuple(d for d in range(x.ndim) if d != dim), keepdims=True) ** (1 / p)
    return x * np.where(norms > limit, limit / (norms + 1e-7), 1)


def sum_to_size(x, size):
    lead = x.ndim - len(size)
    keep = tuple(lead + d for d, n in enumerate(size) if n == 1)
    return x.sum(tuple(range(lead)) + keep, keepdims=True).reshape(size) if lead or keep else x


def block_diag(blocks):
    blocks = [np.atleast_2d(b) for b in blocks]
    out = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), np.result_type(*blocks))
    r = c = 0
    for b in blocks:
        out[r:r + b.shape[0], c:c + b.shape[1]] = b
        r, c = r + b.shape[0], c + b.shape[1]
    return out


def chosen(x, r, repeated):
    rows = list((itertools.combinations_with_replacement if repeated else itertools.combinations)(x, r))
    return np.array(rows, x.dtype).reshape(-1, r)


def put(x, index, source, accumulate):
    out = x.copy().reshape(-1)
    for i, v in zip(index.reshape(-1), source.reshape(-1)):
        out[i] = out[i] + v if accumulate else v
    return out.reshape(x.shape)


def nonzero_static(x, size, fill):
    rows = np.argwhere(x)[:size]
    return np.concatenate([rows, np.full((size - len(rows), x.ndim), fill)])


def index_reduce(x, dim, index, source, how, with_self):
    out, count = np.moveaxis(x.copy(), dim, 0), np.ones(x.shape[dim]) * with_self
    source, start = np.moveaxis(source, dim, 0), {"prod": 1, "mean": 0, "amax": -math.inf, "amin": math.inf}[how]
    step = {"prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}[how]
    if not with_self:
        out[np.unique(index)] = start
    for i, line in zip(index, source):
        out[i], count[i] = step(out[i], line), count[i] + 1
    if how == "mean":
        out = out / np.maximum(count, 1).reshape(-1, *[1] * (out.ndim - 1))
    return np.moveaxis(out, 0, dim)


def masked_index(x, mask, indices, fill):
    return np.where(mask, x[tuple(indices)], fill)


def masked_index_add(x, mask, indices, values):
    out = x.copy()
    np.add.at(out, tuple(indices), np.where(mask, values, 0))
    return out


def chunk_cat(tensors, dim, count):
    parts = []
    for x in tensors:
        size = -(-x.shape[dim] // count) * count
        x = np.pad(x, [(0, size - n if d == dim else 0) for d, n in enumerate(x.shape)])
        parts.append(x.reshape(*x.shape[:dim], count, -1))
    return np.concatenate(parts, dim + 1)


def segment_reduce(x, how, lengths, indices, offsets, axis, unsafe, initial):
    if axis:
        return np.stack([segment_reduce(row, how, None, None, o, axis - 1, unsafe, initial) for row, o in zip(x, offsets)])
    bounds = np.r_[0, np.cumsum(lengths)] if offsets is None else offsets
    function = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}[how]
    out = np.stack([function(x[a:b], axis=0) for a, b in zip(bounds[:-1], bounds[1:])])
    return out if initial is None else out + initial


def covariance(x, correction, frequencies, weights):
    return np.cov(x, ddof=correction, fweights=frequencies, aweights=weights)


def triangle(function):
    return lambda rows, columns, offset, *options: np.stack(function(np.ones((rows, columns)), offset).nonzero())


def split(axis):
    return lambda x, where: tuple(np.split(x, where, axis))


def add_to(references):
    copies(references)
    moments = {"var_mean.dim": np.var, "std_mean.dim": np.std}
    for name, function in moments.items():
        references[name] = lambda x, dim, unbiased, keepdim, function=function: (
            function(x, axis=tuple(dim), ddof=int(unbiased), keepdims=keepdim), x.mean(tuple(dim), keepdims=keepdim))
    references.update({
        "alias_copy": lambda x: x, "detach_copy": lambda x: x, "ravel": lambda x: x.reshape(-1),
        "atleast_3d": lambda x: np.atleast_3d(x), "column_stack": lambda t: np.column_stack([np.atleast_1d(x) for x in t]),
        "dstack": np.dstack, "block_diag": block_diag, "combinations": chosen,
        "cartesian_prod": lambda t: np.array(list(itertools.product(*t))),
        "hsplit.int": split(1), "hsplit.array": split(1), "vsplit.int": split(0), "vsplit.array": split(0),
        "dsplit.int": split(2), "dsplit.array": split(2),
        "tensor_split.tensor_indices_or_sections": lambda x, where, dim: tuple(
            np.array_split(x, int(where) if where.ndim == 0 else where, dim)),
        "fliplr": np.fliplr, "flipud": np.flipud, "sum_to_size": sum_to_size, "kron": np.kron,
        "repeat_interleave.Tensor": lambda n, size: np.repeat(np.arange(len(n)), n),
        "repeat_interleave.self_Tensor": lambda x, n, dim, size: np.repeat(x, n if n.ndim else int(n), dim),
        "diag": np.diag, "diagflat": np.diagflat, "tril_indices": triangle(np.tril), "triu_indices": triangle(np.triu),
        "vander": lambda x, n, increasing: np.vander(x, n, increasing),
        "cross": lambda a, b, dim: np.cross(a, b, axis=-1 if dim is None else dim),
        "H": lambda x: x.conj().T, "mH": lambda x: x.conj().swapaxes(-1, -2), "adjoint": lambda x: x.conj().swapaxes(-1, -2),
        "gcd": np.gcd, "lcm": np.lcm, "ldexp.Tensor": lambda x, n: x * 2.0 ** n, "frexp.Tensor": np.frexp,
        "float_power.Tensor_Tensor": np.float_power,
        "quantile": quantile, "quantile.scalar": quantile, "nanquantile": quantile, "nanquantile.scalar": quantile,
        "nanmedian": lambda x: np.sort(x.reshape(-1))[(x.size - 1) // 2], "nanmedian.dim": nanmedian, "mode": mode,
        "histc": histc, "histogram.bins_tensor": bins, "histogram.bin_ct": bins_of, "histogramdd": even_grid,
        "histogramdd.int_bins": even_grid, "histogramdd.TensorList_bins": lambda x, e, span, w, d: grid(x, e, w, d),
        "unique_consecutive": runs, "unique_dim": distinct,
        "trapezoid.x": lambda y, x, dim: strips(y, dim, widths(y, x, dim)).sum(dim),
        "trapz.x": lambda y, x, dim: strips(y, dim, widths(y, x, dim)).sum(dim),
        "cumulative_trapezoid.x": lambda y, x, dim: strips(y, dim, widths(y, x, dim)).cumsum(dim),
        "cumulative_trapezoid.dx": lambda y, dx, dim: strips(y, dim, dx).cumsum(dim),
        **{f"gradient.{kind}": slopes for kind in ("scalarint", "scalararray", "scalarrayint", "scalarrayarray",
                                                   "tensorarrayint", "tensorarray")},
        "cov": covariance, "corrcoef": np.corrcoef, "renorm": renorm,
        "isin.Tensor_Scalar": lambda x, n, unique, invert: np.isin(x, n, invert=invert),
        "isin.Scalar_Tensor": lambda n, x, unique, invert: np.isin(n, x, invert=invert),
        "equal": np.array_equal, "allclose": np.allclose, "put": put, "nonzero_static": nonzero_static,
        "index_reduce": index_reduce, "_unsafe_masked_index": masked_index,
        "_unsafe_masked_index_put_accumulate": masked_index_add, "_chunk_cat": chunk_cat,
        "narrow.Tensor": lambda x, dim, start, n: np.take(x, range(int(start), int(start) + n), dim),
        "movedim.int": np.moveaxis, "segment_reduce": segment_reduce,
        "unravel_index": lambda i, shape: tuple(np.unravel_index(i, shape)),
        "logspace": lambda start, end, steps, base, *options: np.logspace(start, end, steps, base=base),
    })
    for form in ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"):
        references[f"linspace.{form}"] = lambda start, end, steps, *options: np.linspace(start, end, steps)
        references[f"logspace.{form}"] = references["logspace"]
