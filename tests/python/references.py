"""What each operator computes, in NumPy and SciPy: {full name of an operator: function of its arguments}.

Floating tensors arrive as float64 arrays, complex ones as complex128, integers as int64, bools as bool. Results are
compared after conversion to the operator's own result type, so that integers wrap. DTypes arrive as NumPy's, or None.
"""
import itertools
import math

import arrangement_references
import numpy as np
from scipy import special

REFERENCES = {}


def reference(*names):
    def add(function):
        for name in names:
            assert name not in REFERENCES, name
            REFERENCES[name] = function
        return function

    return add


def cast(x, dtype):
    return x if dtype is None else np.asarray(x).astype(dtype)


def axes(dim, ndim):
    """NumPy's axis argument of PyTorch's dim: no dimensions are all."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return None
    if isinstance(dim, int):
        dim = (dim,)
    return tuple(d % max(ndim, 1) for d in dim) if ndim else None


def wide(x):
    """Bools as integers."""
    return x.astype(np.int64) if np.asarray(x).dtype == bool else np.asarray(x)


# Elementwise, one operand

UNARY = {
    "neg": np.negative, "abs": lambda x: np.abs(wide(x)), "sign": lambda x: np.sign(wide(x)), "ceil": np.ceil, "floor": np.floor, "round": np.rint,
    "trunc": np.trunc, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "erf": special.erf, "erfc": special.erfc, "erfinv": special.erfinv, "lgamma": special.gammaln,
    "digamma": special.digamma, "sigmoid": lambda x: 1 / (1 + np.exp(-wide(x))), "logical_not": np.logical_not, "bitwise_not": np.invert, "signbit": np.signbit,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "conj_physical": np.conj, "square": lambda x: wide(x) ** 2,
    "frac": lambda x: x - np.trunc(x), "deg2rad": lambda x: np.deg2rad(wide(x)), "rad2deg": lambda x: np.rad2deg(wide(x)), "sinc": np.sinc,
    "isposinf": lambda x: np.isposinf(wide(x)), "isneginf": lambda x: np.isneginf(wide(x)), "isreal": np.isreal, "positive": lambda x: x,
    "conj": np.conj, "real": np.real, "imag": np.imag, "angle": lambda x: np.angle(wide(x)), "sgn": lambda x: np.sign(wide(x)),
    "clone": lambda x: x, "alias": lambda x: x, "detach": lambda x: x, "contiguous": lambda x: x, "zero": np.zeros_like,
    # activations
    "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6), "silu": lambda x: x * special.expit(x),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6, "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)), "tanhshrink": lambda x: x - np.tanh(x), "log_sigmoid": lambda x: -np.logaddexp(0, -x),
    "softsign": lambda x: x / (1 + np.abs(x)),
}
for _name, _function in UNARY.items():
    _keeps_bools = _name in ("bitwise_not", "logical_not")
    reference(_name)(lambda x, *ignored, _function=_function, _keeps_bools=_keeps_bools: _function(x if _keeps_bools else wide(x)))

reference("round.decimals")(lambda x, decimals: np.rint(x * 10.0**decimals) / 10.0**decimals)
reference("logit")(lambda x, eps: special.logit(wide(x) if eps is None else np.clip(x, eps, 1 - eps)))
reference("polygamma")(lambda n, x: special.polygamma(n, x))
reference("leaky_relu")(lambda x, slope: np.where(x > 0, x, x * slope))
reference("elu")(lambda x, alpha, scale, input_scale: np.where(x > 0, scale * x, scale * alpha * np.expm1(input_scale * x)))
reference("celu")(lambda x, alpha: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)))
reference("hardtanh")(lambda x, low, high: np.clip(x, low, high))
reference("softplus")(lambda x, beta, threshold: np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta))
reference("threshold")(lambda x, threshold, value: np.where(x <= threshold, value, x))
reference("softshrink")(lambda x, lambd: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, 0)))
reference("hardshrink")(lambda x, lambd: np.where(np.abs(x) > lambd, x, 0))
reference("to.dtype")(lambda x, dtype, *ignored: x.real.astype(dtype) if np.iscomplexobj(x) and np.dtype(dtype).kind != "c" else x.astype(dtype))
reference("_to_copy")(lambda x, dtype, *ignored: cast(x.real if np.iscomplexobj(x) and dtype and np.dtype(dtype).kind != "c" else x, dtype))


@reference("gelu")
def gelu(x, approximate):
    if approximate == "tanh":
        return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + special.erf(x / math.sqrt(2)))


@reference("glu")
def glu(x, dim):
    a, b = np.split(x, 2, axis=dim)
    return a * special.expit(b)


@reference("prelu")
def prelu(x, weight):
    shape = [1] * x.ndim
    if x.ndim > 1:
        shape[1] = -1
        weight = weight.reshape(shape)
    return np.where(x > 0, x, weight.reshape(()) * x if weight.size == 1 else weight * x)


# Elementwise, several operands


def power(a, b):
    a, b = wide(a), wide(b)
    if a.dtype.kind == "i" and b.dtype.kind == "i":
        with np.errstate(all="ignore"):
            inverse = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b % 2), 0))
            return np.where(b < 0, inverse, a ** np.maximum(b, 0))
    return a**b


def divide(a, b, rounding=None):
    a, b = wide(a), wide(b)
    if rounding is None:
        return a / b
    if rounding == "floor":
        return np.floor_divide(a, b)
    return np.fix(a / b) if a.dtype.kind == "f" or b.dtype.kind == "f" else np.fix(a / b).astype(np.int64)


BINARY = {
    "div.Tensor": divide, "_div_trunc": lambda a, b: divide(a, b, "trunc"), "_div_floor": lambda a, b: divide(a, b, "floor"),
    "floor_divide": lambda a, b: divide(a, b, "floor"), "remainder.Tensor": lambda a, b: np.remainder(wide(a), wide(b)),
    "_remainder": lambda a, b: np.remainder(wide(a), wide(b)), "_fmod": lambda a, b: np.fmod(wide(a), wide(b)),
    "fmod.Tensor": lambda a, b: np.fmod(wide(a), wide(b)), "_pow": power, "pow.Tensor_Tensor": power, "atan2": lambda a, b: np.arctan2(wide(a), wide(b)),
    "hypot": np.hypot, "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "max.other": np.maximum,
    "min.other": np.minimum, "copysign.Tensor": lambda a, b: np.copysign(wide(a), wide(b)), "eq.Tensor": np.equal, "ne.Tensor": np.not_equal, "lt.Tensor": np.less,
    "le.Tensor": np.less_equal, "gt.Tensor": np.greater, "ge.Tensor": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor, "bitwise_and.Tensor": np.bitwise_and, "bitwise_or.Tensor": np.bitwise_or,
    "bitwise_xor.Tensor": np.bitwise_xor, "bitwise_left_shift.Tensor": np.left_shift, "bitwise_right_shift.Tensor": np.right_shift,
    "xlogy.Tensor": lambda a, b: special.xlogy(wide(a), wide(b)), "special_xlog1py": lambda a, b: special.xlog1py(wide(a), wide(b)),
    "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2, "heaviside": lambda a, b: np.heaviside(wide(a), wide(b)), "mul.Tensor": np.multiply,
    "clamp_min.Tensor": np.maximum, "clamp_max.Tensor": np.minimum, "copy": lambda a, b: np.broadcast_to(b, a.shape),
    "fill.Tensor": lambda a, b: np.broadcast_to(b, a.shape), "complex": lambda a, b: a + 1j * b, "type_as": lambda a, b: a,
}
for _name, _function in BINARY.items():
    reference(_name)(lambda a, b, *ignored, _function=_function: _function(np.asarray(a), np.asarray(b)))

reference("div.Tensor_mode")(lambda a, b, rounding: divide(a, b, rounding))
reference("add.Tensor")(lambda a, b, alpha: np.add(a, b) if alpha is True or alpha == 1 else a + alpha * b)
reference("sub.Tensor")(lambda a, b, alpha: a - (b if alpha == 1 else alpha * b))
reference("rsub.Tensor")(lambda a, b, alpha: b - (a if alpha == 1 else alpha * a))
reference("where.self")(np.where)
reference("masked_fill.Tensor")(lambda x, mask, value: np.where(mask, value, x))
reference("lerp.Tensor")(lambda a, b, weight: a + weight * (b - a))
reference("addcmul")(lambda x, a, b, value: x + value * a * b)
reference("addcdiv")(lambda x, a, b, value: x + value * a / b)


@reference("clamp", "clamp.Tensor")
def clamp(x, low, high):
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


# Reductions

reference("sum")(lambda x, dtype: np.sum(wide(cast(x, dtype))))
reference("sum.dim_IntList")(lambda x, dim, keepdim, dtype: np.sum(wide(cast(x, dtype)), axis=axes(dim, x.ndim), keepdims=keepdim))
reference("prod")(lambda x, dtype: np.prod(wide(cast(x, dtype))))
reference("prod.dim_int")(lambda x, dim, keepdim, dtype: np.prod(wide(cast(x, dtype)), axis=axes(dim, x.ndim), keepdims=keepdim))
reference("mean")(lambda x, dtype: np.mean(cast(x, dtype)))
reference("mean.dim")(lambda x, dim, keepdim, dtype: np.mean(cast(x, dtype), axis=axes(dim, x.ndim), keepdims=keepdim))
reference("amax")(lambda x, dim, keepdim: np.max(x, axis=axes(dim, x.ndim), keepdims=keepdim))
reference("amin")(lambda x, dim, keepdim: np.min(x, axis=axes(dim, x.ndim), keepdims=keepdim))
reference("max")(np.max)
reference("min")(np.min)
reference("any")(np.any)
reference("all")(np.all)
reference("any.dim", "any.dims")(lambda x, dim, keepdim: np.any(x, axis=axes(dim, x.ndim), keepdims=keepdim))
reference("all.dim", "all.dims")(lambda x, dim, keepdim: np.all(x, axis=axes(dim, x.ndim), keepdims=keepdim))
reference("nansum")(lambda x, dim, keepdim, dtype: np.nansum(wide(cast(x, dtype)), axis=axes(dim, x.ndim), keepdims=keepdim))
reference("count_nonzero", "count_nonzero.dim_IntList")(lambda x, dim: np.count_nonzero(x, axis=axes(dim, x.ndim)))
reference("logsumexp")(lambda x, dim, keepdim: special.logsumexp(x, axis=axes(dim, x.ndim), keepdims=keepdim) if x.size else np.log(np.sum(np.exp(x), axis=axes(dim, x.ndim), keepdims=keepdim)))
reference("trace")(np.trace)


@reference("aminmax")
def aminmax(x, dim, keepdim):
    axis = axes(dim, x.ndim)
    return np.min(x, axis=axis, keepdims=keepdim), np.max(x, axis=axis, keepdims=keepdim)


def arg_reduction(argument):
    def compute(x, dim, keepdim):
        if x.ndim == 0:
            return np.int64(0)
        out = argument(x, axis=dim)
        if keepdim:
            return np.expand_dims(out, dim) if dim is not None else out.reshape([1] * x.ndim)
        return out

    return compute


reference("argmax")(arg_reduction(np.argmax))
reference("argmin")(arg_reduction(np.argmin))
reference("max.dim")(lambda x, dim, keepdim: (np.max(x, axis=axes(dim, x.ndim), keepdims=keepdim), arg_reduction(np.argmax)(x, dim, keepdim)))
reference("min.dim")(lambda x, dim, keepdim: (np.min(x, axis=axes(dim, x.ndim), keepdims=keepdim), arg_reduction(np.argmin)(x, dim, keepdim)))


def moments(x, dim, correction, keepdim):
    axis = axes(dim, x.ndim)
    mean = np.mean(x, axis=axis, keepdims=True)
    count = x.size if axis is None else math.prod(x.shape[d] for d in axis)
    with np.errstate(all="ignore"):
        variance = np.sum(np.abs(x - mean) ** 2, axis=axis, keepdims=True) / np.float64(max(count - correction, 0))
    if not keepdim:
        variance, mean = np.squeeze(variance, axis), np.squeeze(mean, axis)
    return variance, mean


def moment_references(name, result):
    reference(name)(lambda x, unbiased: result(*moments(x, None, int(unbiased), False)))
    if "_" not in name:
        reference(name + ".dim")(lambda x, dim, unbiased, keepdim: result(*moments(x, dim, int(unbiased), keepdim)))
    reference(name + ".correction")(lambda x, dim, correction, keepdim: result(*moments(x, dim, 1 if correction is None else correction, keepdim)))


moment_references("var", lambda v, m: v)
moment_references("std", lambda v, m: np.sqrt(v))
moment_references("var_mean", lambda v, m: (v, m))
moment_references("std_mean", lambda v, m: (np.sqrt(v), m))


def vector_norm(x, p, dim=None, keepdim=False):
    axis, size = axes(dim, x.ndim), np.abs(x)
    if p == math.inf:
        return np.max(size, axis=axis, keepdims=keepdim)
    if p == -math.inf:
        return np.min(size, axis=axis, keepdims=keepdim)
    if p == 0:
        return np.sum(size != 0, axis=axis, keepdims=keepdim).astype(float)
    return np.sum(size**p, axis=axis, keepdims=keepdim) ** (1 / p)


reference("linalg_vector_norm")(lambda x, p, dim, keepdim, dtype: vector_norm(cast(x, dtype), p, dim, keepdim))
reference("norm.Scalar")(vector_norm)
reference("norm.ScalarOpt_dim")(lambda x, p, dim, keepdim: vector_norm(x, 2 if p is None else p, dim, keepdim))
reference("dist")(lambda a, b, p: vector_norm(a - b, p))

# Scans

reference("cumsum")(lambda x, dim, dtype: np.cumsum(wide(cast(x, dtype)), axis=dim) if x.ndim else wide(cast(x, dtype)))
reference("cumprod")(lambda x, dim, dtype: np.cumprod(wide(cast(x, dtype)), axis=dim) if x.ndim else wide(cast(x, dtype)))
reference("logcumsumexp")(lambda x, dim: np.logaddexp.accumulate(x, axis=dim) if x.ndim else x)


def running(better):
    """Values and the positions of the latest extremes so far."""

    def compute(x, dim):
        if x.ndim == 0:
            return x, np.int64(0)
        values, positions = np.moveaxis(x, dim, 0).copy(), np.zeros(np.moveaxis(x, dim, 0).shape, np.int64)
        for k in range(1, len(values)):
            take = better(values[k], values[k - 1])
            positions[k] = np.where(take, k, positions[k - 1])
            values[k] = np.where(take, values[k], values[k - 1])
        return np.moveaxis(values, 0, dim), np.moveaxis(positions, 0, dim)

    return compute


reference("cummax")(running(np.greater_equal))
reference("cummin")(running(np.less_equal))

# Matrix products

for _name in ("mm", "bmm", "matmul", "mv", "dot"):
    reference(_name)(np.matmul)
reference("vdot")(np.vdot)
reference("outer")(np.outer)
reference("inner")(np.inner)
reference("linear")(lambda x, weight, bias: x @ weight.T + (0 if bias is None else bias))
reference("tensordot")(lambda a, b, dims_a, dims_b: np.tensordot(a, b, (tuple(dims_a), tuple(dims_b))))
for _name in ("addmm", "addmv", "baddbmm"):
    reference(_name)(lambda x, a, b, beta, alpha: alpha * (a @ b) + (beta * x if beta else 0))
reference("addbmm")(lambda x, a, b, beta, alpha: alpha * (a @ b).sum(0) + (beta * x if beta else 0))
reference("addr")(lambda x, a, b, beta, alpha: alpha * np.outer(a, b) + (beta * x if beta else 0))

# Views and shapes

reference("permute")(np.transpose)
reference("expand")(lambda x, size, implicit: np.broadcast_to(x, [x.shape[d - (len(size) - x.ndim)] if s == -1 else s for d, s in enumerate(size)]))
reference("broadcast_to")(np.broadcast_to)
for _name in ("view", "reshape"):
    reference(_name)(lambda x, size: x.reshape(size))
reference("view_as", "reshape_as")(lambda x, other: x.reshape(other.shape))
reference("expand_as")(lambda x, other: np.broadcast_to(x, other.shape))
reference("view_as_real")(lambda x: np.stack([x.real, x.imag], -1))
reference("view_as_complex")(lambda x: x[..., 0] + 1j * x[..., 1])
reference("unsqueeze")(np.expand_dims)
reference("squeeze")(np.squeeze)
reference("squeeze.dim")(lambda x, dim: np.squeeze(x, dim) if x.ndim and x.shape[dim] == 1 else x)
reference("squeeze.dims")(lambda x, dims: np.squeeze(x, tuple(d for d in dims if x.shape[d] == 1)) if x.ndim else x)
reference("transpose.int", "swapaxes")(lambda x, a, b: np.swapaxes(x, a, b) if x.ndim else x)
reference("t")(np.transpose)
reference("mT")(lambda x: np.swapaxes(x, -1, -2))
reference("movedim.intlist")(lambda x, source, to: x if x.ndim == 0 else np.moveaxis(x, source, to))
reference("select.int")(lambda x, dim, index: np.take(x, index, dim))
reference("diagonal")(np.diagonal)
reference("flatten.using_ints")(lambda x, a, b: x.reshape(1) if x.ndim == 0 else x.reshape(x.shape[: a % x.ndim] + (math.prod(x.shape[a % x.ndim : b % x.ndim + 1]),) + x.shape[b % x.ndim + 1 :]))
reference("unflatten.int")(lambda x, dim, sizes: x.reshape(x.shape[: dim % x.ndim] + tuple(s if s != -1 else x.shape[dim] // -math.prod(sizes) for s in sizes) + x.shape[dim % x.ndim + 1 :]))
reference("narrow")(lambda x, dim, start, length: along(x, dim, slice(start % max(x.shape[dim] + 1, 1) if start >= 0 else start + x.shape[dim], (start if start >= 0 else start + x.shape[dim]) + length)))
reference("chunk")(lambda x, chunks, dim: split(x, max(-(-x.shape[dim] // chunks), 1), dim) if x.shape[dim] else tuple(x for _ in range(chunks)))
reference("unbind.int")(lambda x, dim: tuple(np.moveaxis(x, dim, 0)))
reference("tensor_split.sections", "tensor_split.indices")(lambda x, at, dim: tuple(np.array_split(x, at, dim)))
reference("split_with_sizes")(lambda x, sizes, dim: tuple(np.split(x, np.cumsum(sizes)[:-1], dim)))
reference("broadcast_tensors")(lambda tensors: tuple(np.broadcast_arrays(*tensors)))
reference("meshgrid.indexing")(lambda tensors, indexing: tuple(np.meshgrid(*tensors, indexing=indexing)))
reference("stack")(np.stack)
reference("hstack")(np.hstack)
reference("vstack")(np.vstack)
reference("atleast_1d")(np.atleast_1d)
reference("atleast_2d")(np.atleast_2d)
reference("repeat", "tile")(np.tile)
reference("repeat_interleave.self_int")(lambda x, repeats, dim, size: np.repeat(x, repeats, dim))
reference("rot90")(np.rot90)
reference("flip")(lambda x, dims: np.flip(x, tuple(dims)) if x.ndim else x)
reference("roll")(lambda x, shifts, dims: np.roll(x, tuple(shifts), tuple(dims)) if dims else np.roll(x, shifts[0]))
def _triangle(of):
    """NumPy's takes no diagonal beyond a C long's sums with sizes."""
    return lambda x, diagonal=0: of(x, max(-10**6, min(10**6, diagonal)))


reference("tril")(_triangle(np.tril))
reference("triu")(_triangle(np.triu))


def along(x, dim, index):
    """A view."""
    return x[(slice(None),) * (dim % x.ndim) + (index, Ellipsis)]


@reference("slice.Tensor")
def slice_(x, dim, start, end, step):
    return along(x, dim, slice(start, end, step))


@reference("split.Tensor")
def split(x, size, dim):
    if x.shape[dim] == 0:
        return (x,)
    return tuple(along(x, dim, slice(k, k + size)) for k in range(0, x.shape[dim], size))


@reference("unfold")
def unfold(x, dim, size, step):
    if x.ndim == 0:
        return np.broadcast_to(x, (size,))
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dim)
    return along(windows, dim % x.ndim, slice(None, None, step))


@reference("diag_embed")
def diag_embed(x, offset, dim1, dim2):
    n, ndim = x.shape[-1] + abs(offset), x.ndim + 1
    out = np.zeros(x.shape[:-1] + (n, n), x.dtype)
    k = np.arange(x.shape[-1])
    out[..., k + max(-offset, 0), k + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (dim1 % ndim, dim2 % ndim))


@reference("cat")
def cat(tensors, dim):
    # A vector of size 0 joins anything.
    kept = [t for t in tensors if t.shape != (0,)]
    return np.concatenate(kept, dim) if kept else tensors[0]


def pad_widths(x, pad):
    widths = [(0, 0)] * x.ndim
    for k in range(len(pad) // 2):
        widths[x.ndim - 1 - k] = (pad[2 * k], pad[2 * k + 1])
    return widths


def cropped(x, widths):
    for d, (low, high) in enumerate(widths):
        x = along(x, d, slice(max(-low, 0), x.shape[d] - max(-high, 0)))
    return x, [(max(low, 0), max(high, 0)) for low, high in widths]


@reference("constant_pad_nd")
def constant_pad(x, pad, value):
    x, widths = cropped(x, pad_widths(x, pad))
    return np.pad(x, widths, constant_values=value)


@reference("pad")
def pad(x, pad, mode, value):
    if mode == "constant":
        return constant_pad(x, pad, value or 0)
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    x, widths = cropped(x, pad_widths(x, pad))
    return np.pad(x, widths, mode=modes[mode])


reference("_reflection_pad")(lambda x, padding: pad(x, padding, "reflect", None))
reference("_replication_pad")(lambda x, padding: pad(x, padding, "replicate", None))


def strided(x, size, stride, offset):
    flat = x.reshape(-1)
    index = np.full(tuple(size), offset or 0)
    for d, (n, s) in enumerate(zip(size, stride)):
        index += np.arange(n).reshape([-1] + [1] * (len(size) - d - 1)) * s
    return flat, index


@reference("select_scatter")
def select_scatter(x, source, dim, index):
    out = np.array(x)
    along(out, dim, index if index >= 0 else index + x.shape[dim])[...] = source
    return out


@reference("slice_scatter")
def slice_scatter(x, source, dim, start, end, step):
    out = x.copy()
    along(out, dim, slice(start, end, step))[...] = source
    return out


# Indexing


def to_index(indices):
    return tuple(slice(None) if i is None else i for i in indices)


reference("index.Tensor", "_index")(lambda x, indices: x[to_index(indices)])
reference("index_select")(lambda x, dim, index: np.take(x, index, dim) if x.ndim else x)
reference("take")(lambda x, index: np.take(x, index))
@reference("take_along_dim")
def take_along_dim(x, indices, dim):
    if x.ndim == 0:
        return x
    flat = dim is None
    return np.take_along_axis(x.reshape(-1) if flat else x, indices.reshape(-1) if flat else indices, 0 if flat else dim)
reference("masked_select")(lambda x, mask: np.broadcast_arrays(x, mask)[0][np.broadcast_arrays(x, mask)[1]])
reference("nonzero")(lambda x: np.argwhere(x))
reference("embedding")(lambda weight, indices, *ignored: weight[indices])
reference("one_hot")(lambda x, classes: (x[..., None] == np.arange(classes if classes != -1 else x.max() + 1)).astype(np.int64))


@reference("gather")
def gather(x, dim, index, sparse):
    if x.ndim == 0:
        return np.broadcast_to(x, index.shape)
    at = list(np.indices(index.shape))
    at[dim] = index
    return x[tuple(at)]


@reference("index_put")
def index_put(x, indices, values, accumulate):
    out = x.copy()
    if accumulate:
        np.add.at(out, to_index(indices), values)
    else:
        out[to_index(indices)] = values
    return out


@reference("index_add")
def index_add(x, dim, index, source, alpha):
    out = np.atleast_1d(x.copy())
    np.add.at(out, (slice(None),) * (dim % out.ndim) + (np.atleast_1d(index),), alpha * np.atleast_1d(source))
    return out.reshape(x.shape)


@reference("index_copy")
def index_copy(x, dim, index, source):
    out = np.atleast_1d(x.copy())
    along(out, dim, slice(None))[(slice(None),) * (dim % out.ndim) + (np.atleast_1d(index),)] = np.atleast_1d(source)
    return out.reshape(x.shape)


@reference("index_fill.int_Tensor")
def index_fill(x, dim, index, value):
    out = np.atleast_1d(x.copy())
    out[(slice(None),) * (dim % out.ndim) + (np.atleast_1d(index),)] = value
    return out.reshape(x.shape)


REDUCTIONS = {"sum": np.add, "add": np.add, "prod": np.multiply, "multiply": np.multiply, "amax": np.maximum, "amin": np.minimum}


def scatter(x, dim, index, source, mode=None, include_self=True):
    out = np.atleast_1d(x.copy())
    index = np.atleast_1d(index)
    at = list(np.indices(index.shape))
    at[dim] = index
    at = tuple(at)
    source = np.broadcast_to(source, index.shape) if np.ndim(source) == 0 else np.atleast_1d(source)[tuple(slice(n) for n in index.shape)]
    if mode is None:
        out[at] = source
    elif mode == "mean":
        count = np.full(out.shape, 1 if include_self else 0)
        if not include_self:
            out[at] = 0
        np.add.at(out, at, source)
        np.add.at(count, at, 1)
        count = np.maximum(count, 1)
        out = out // count if out.dtype.kind == "i" else out / count
    else:
        identity = {"prod": 1, "sum": 0, "amax": -np.inf, "amin": np.inf}
        if not include_self:
            if out.dtype.kind == "i" and mode in ("amax", "amin"):
                info = np.iinfo(np.int64)
                out[at] = info.min if mode == "amax" else info.max
            else:
                out[at] = identity[mode]
        REDUCTIONS[mode].at(out, at, source)
    return out.reshape(x.shape)


reference("scatter.src", "scatter.value")(scatter)
reference("scatter_add")(lambda x, dim, index, source: scatter(x, dim, index, source, "add"))
reference("scatter.reduce", "scatter_reduce.two")(scatter)
reference("_scatter")(lambda x, dim, index, source, mode: scatter(x, dim, index, source, {"": None, "set": None, "none": None, "store": None, "replace": None}.get(mode, mode)))


@reference("masked_scatter")
def masked_scatter(x, mask, source):
    x, mask = (a.copy() for a in np.broadcast_arrays(x, mask))
    x[mask] = source.reshape(-1)[: mask.sum()]
    return x


@reference("embedding_dense_backward")
def embedding_dense_backward(g, indices, count, padding, scale):
    out = np.zeros((count, g.shape[-1]))
    np.add.at(out, indices.reshape(-1), g.reshape(-1, g.shape[-1]))
    if scale:
        out /= np.maximum(np.bincount(indices.reshape(-1), minlength=count), 1)[:, None]
    if padding >= 0:
        out[padding] = 0
    return out


# Factories

reference("full")(lambda size, value, dtype, *ignored: np.full(size, value, dtype))
reference("full_like")(lambda x, value, dtype, *ignored: np.full(x.shape, value, dtype or x.dtype))
reference("new_full")(lambda x, size, value, dtype, *ignored: np.full(size, value, dtype or x.dtype))
reference("zeros")(lambda size, *ignored: np.zeros(size))
reference("ones")(lambda size, *ignored: np.ones(size))
reference("zeros_like")(lambda x, *ignored: np.zeros(x.shape))
reference("ones_like")(lambda x, *ignored: np.ones(x.shape))
reference("new_zeros")(lambda x, size, *ignored: np.zeros(size))
reference("new_ones")(lambda x, size, *ignored: np.ones(size))
reference("scalar_tensor")(lambda value, *ignored: np.asarray(value))
reference("arange")(lambda end, *ignored: np.arange(end))
reference("arange.start_step")(lambda start, end, step, *ignored: np.arange(start, end, step))
reference("linspace")(lambda start, end, steps, *ignored: np.linspace(start, end, steps))
reference("eye")(lambda n, *ignored: np.eye(n))
reference("eye.m")(lambda n, m, *ignored: np.eye(n, m))

# Softmax, normalisation


def softmax(x, dim, *ignored):
    if x.size == 0:
        return x
    e = np.exp(x - np.max(x, axis=dim, keepdims=True)) if x.ndim else np.ones(())
    return e / np.sum(e, axis=dim, keepdims=True) if x.ndim else e


reference("_softmax", "softmax.int")(softmax)
reference("_log_softmax", "log_softmax.int")(lambda x, dim, *ignored: x - special.logsumexp(x, axis=dim, keepdims=True) if x.size and x.ndim else x * 0)


@reference("_safe_softmax")
def safe_softmax(x, dim, *ignored):
    with np.errstate(all="ignore"):
        out = softmax(x, dim)
    return np.where(np.all(x == -np.inf, axis=dim, keepdims=True), 0, out) if x.ndim and x.size else out


def standardize(x, axis, eps):
    mean, variance = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
    inverse = 1 / np.sqrt(variance + eps)
    return (x - mean) * inverse, mean, inverse


def affine(x, weight, bias, shape):
    if weight is not None:
        x = x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def layer_norm(x, shape, weight, bias, eps):
    axis = tuple(range(x.ndim - len(shape), x.ndim))
    out, mean, inverse = standardize(x, axis, eps)
    return affine(out, weight, bias, tuple(shape)), mean, inverse


reference("native_layer_norm")(layer_norm)
reference("layer_norm")(lambda x, shape, weight, bias, eps, *ignored: layer_norm(x, shape, weight, bias, eps)[0])


def group_norm(x, groups, weight, bias, eps):
    grouped, mean, inverse = standardize(x.reshape(x.shape[0], groups, -1), -1, eps)
    channels = [1, x.shape[1]] + [1] * (x.ndim - 2)
    return affine(grouped.reshape(x.shape), weight, bias, channels), mean[..., 0], inverse[..., 0]


reference("group_norm")(lambda x, groups, weight, bias, eps, *ignored: group_norm(x, groups, weight, bias, eps)[0])
reference("native_group_norm")(lambda x, weight, bias, n, c, hw, groups, eps: group_norm(x, groups, weight, bias, eps))


def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    axis = (0,) + tuple(range(2, x.ndim))
    shape = [1, x.shape[1]] + [1] * (x.ndim - 2)
    if training:
        out, mean, inverse = standardize(x, axis, eps)
        saved = mean.reshape(-1), inverse.reshape(-1)
    else:
        out = (x - running_mean.reshape(shape)) / np.sqrt(running_var.reshape(shape) + eps)
        saved = np.zeros(0), np.zeros(0)
    return affine(out, weight, bias, shape), *saved


reference("native_batch_norm")(batch_norm)
reference("batch_norm")(lambda *a: batch_norm(*a[:8])[0])


@reference("instance_norm")
def instance_norm(x, weight, bias, running_mean, running_var, use_input, momentum, eps, *ignored):
    shape = [1, x.shape[1]] + [1] * (x.ndim - 2)
    if use_input:
        return affine(standardize(x, tuple(range(2, x.ndim)), eps)[0], weight, bias, shape)
    return affine((x - running_mean.reshape(shape)) / np.sqrt(running_var.reshape(shape) + eps), weight, bias, shape)


# Losses; reduction 0: none, 1: mean, 2: sum


def reduced(loss, reduction):
    return loss if reduction == 0 else np.mean(loss) if reduction == 1 else np.sum(loss)


reference("mse_loss")(lambda a, b, reduction: reduced((a - b) ** 2, reduction))
reference("l1_loss")(lambda a, b, reduction: reduced(np.abs(a - b), reduction))
reference("huber_loss")(lambda a, b, reduction, delta: reduced(np.where(np.abs(a - b) < delta, (a - b) ** 2 / 2, delta * (np.abs(a - b) - delta / 2)), reduction))
reference("kl_div")(lambda a, b, reduction, log_target: reduced(np.exp(b) * (b - a) if log_target else special.xlogy(b, b) - b * a, reduction))
reference("soft_margin_loss")(lambda a, b, reduction: reduced(np.logaddexp(0, -a * b), reduction))
reference("margin_ranking_loss")(lambda a, b, y, margin, reduction: reduced(np.maximum(0, -y * (a - b) + margin), reduction))
reference("binary_cross_entropy")(lambda a, b, weight, reduction: reduced(-(special.xlogy(b, a) + special.xlog1py(1 - b, -a)) * (1 if weight is None else weight), reduction))
reference("hinge_embedding_loss")(lambda a, y, margin, reduction: reduced(np.where(y == 1, a, np.maximum(0, margin - a)), reduction))


@reference("smooth_l1_loss")
def smooth_l1_loss(a, b, reduction, beta):
    d = np.abs(a - b)
    return reduced(np.where(d < beta, d * d / (2 * beta), d - beta / 2) if beta else d, reduction)


@reference("binary_cross_entropy_with_logits")
def bce_with_logits(a, b, weight, pos_weight, reduction):
    w = 1 if pos_weight is None else pos_weight
    loss = w * b * np.logaddexp(0, -a) + (1 - b) * np.logaddexp(0, a)
    return reduced(loss * (1 if weight is None else weight), reduction)


@reference("poisson_nll_loss")
def poisson_nll_loss(a, b, log_input, full, eps, reduction):
    loss = np.exp(a) - b * a if log_input else a - b * np.log(a + eps)
    if full:
        with np.errstate(all="ignore"):
            loss = loss + np.where(b > 1, b * np.log(b) - b + 0.5 * np.log(2 * np.pi * b), 0)
    return reduced(loss, reduction)


def similarity(a, b, dim, eps):
    a, b = np.broadcast_arrays(a, b)
    norms = [np.maximum(np.sqrt(np.sum(x * x, dim, keepdims=True)), eps) for x in (a, b)]
    return np.sum(a / norms[0] * (b / norms[1]), dim)


reference("cosine_similarity")(similarity)


@reference("cosine_embedding_loss")
def cosine_embedding_loss(a, b, y, margin, reduction):
    dim = a.ndim - 1
    c = np.sum(a * b, dim) / np.sqrt((np.sum(a * a, dim) + 1e-12) * (np.sum(b * b, dim) + 1e-12))
    return reduced(np.where(y == 1, 1 - c, np.maximum(0, c - margin)), reduction)


@reference("triplet_margin_loss")
def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction):
    def distance(a, b):
        return np.sum(np.abs(a - b + eps) ** p, -1) ** (1 / p)

    far = distance(anchor, negative)
    if swap:
        far = np.minimum(far, distance(positive, negative))
    return reduced(np.maximum(0, margin + distance(anchor, positive) - far), reduction)


def nll(x, target, weight, reduction, ignore):
    """Classes are dimension 1 (or 0 of a vector)."""
    vector = x.ndim == 1
    x, target = (x[None], np.atleast_1d(target)) if vector else (x, target)
    weight = np.ones(x.shape[1]) if weight is None else weight
    kept = target != ignore
    t = np.where(kept, target, 0)
    w = weight[t] * kept
    loss = -np.take_along_axis(x, np.expand_dims(t, 1), 1).squeeze(1) * w
    loss = np.where(kept, loss, 0)
    if reduction == 1:
        with np.errstate(all="ignore"):
            return np.sum(loss) / np.sum(w)
    if reduction == 2:
        return np.sum(loss)
    return loss[0] if vector else loss


reference("nll_loss", "nll_loss_nd")(nll)


@reference("cross_entropy_loss")
def cross_entropy(x, target, weight, reduction, ignore, smoothing):
    dim = 0 if x.ndim == 1 else 1
    logs = x - special.logsumexp(x, axis=dim, keepdims=True)
    shape = [-1 if d == dim else 1 for d in range(x.ndim)]
    w = np.ones(x.shape[dim]) if weight is None else weight
    if target.dtype.kind == "f":
        target = target * (1 - smoothing) + smoothing / x.shape[dim]
        loss = -np.sum(logs * target * w.reshape(shape), axis=dim)
        return loss.sum() / (x.size / x.shape[dim]) if reduction == 1 else reduced(loss, reduction)
    base = nll(logs, target, weight, reduction, ignore)
    if not smoothing:
        return base
    kept = target != ignore
    smooth = -np.sum(logs * w.reshape(shape), axis=dim) * kept
    if reduction == 1:
        smooth = np.sum(smooth) / np.sum(w[np.where(kept, target, 0)] * kept)
    elif reduction == 2:
        smooth = np.sum(smooth)
    return (1 - smoothing) * base + smoothing / x.shape[dim] * smooth


# Convolution: windows of the padded, spread input, one product each


def spread(x, steps):
    """Zeros between the elements of the spatial dimensions."""
    out = np.zeros(x.shape[:2] + tuple((n - 1) * s + 1 if n else 0 for n, s in zip(x.shape[2:], steps)), x.dtype)
    out[(slice(None),) * 2 + tuple(slice(None, None, s) for s in steps)] = x
    return out


def correlate(x, weight, stride, dilation, groups):
    n, spatial = x.shape[0], weight.shape[2:]
    sizes = [(x.shape[2 + d] - dilation[d] * (k - 1) - 1) // stride[d] + 1 for d, k in enumerate(spatial)]
    out = np.zeros((n, weight.shape[0], *sizes), np.result_type(x, weight))
    ins, outs = x.shape[1] // groups, weight.shape[0] // groups
    for offset in itertools.product(*map(range, spatial)):
        window = x[(slice(None),) * 2 + tuple(slice(o * d, o * d + (m - 1) * s + 1, s) for o, d, m, s in zip(offset, dilation, sizes, stride))]
        for g in range(groups):
            w = weight[(slice(g * outs, (g + 1) * outs), slice(None), *offset)]
            out[:, g * outs : (g + 1) * outs] += np.einsum("oi,ni...->no...", w, window[:, g * ins : (g + 1) * ins])
    return out


@reference("convolution")
def convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    d = weight.ndim - 2
    batched = x.ndim == weight.ndim
    x = x if batched else x[None]
    stride, padding, dilation, output_padding = (list(v) * d if len(v) == 1 else list(v) for v in (stride, padding, dilation, output_padding))
    if transposed:
        ins, outs = weight.shape[0] // groups, weight.shape[1]
        flipped = np.flip(weight, tuple(range(2, d + 2)))
        weight = np.concatenate([np.swapaxes(flipped[g * ins : (g + 1) * ins], 0, 1) for g in range(groups)])
        widths = [(dilation[k] * (weight.shape[2 + k] - 1) - padding[k],) * 2 for k in range(d)]
        widths = [(low, high + output_padding[k]) for k, (low, high) in enumerate(widths)]
        x, stride = spread(x, stride), [1] * d
    else:
        widths = [(p, p) for p in padding]
    x, widths = cropped(x, [(0, 0)] * 2 + widths)
    out = correlate(np.pad(x, widths), weight, stride, dilation, groups)
    if bias is not None:
        out = out + bias.reshape([1, -1] + [1] * d)
    return out if batched else out[0]


def convolution_like(dims, transposed=False, text_padding=False):
    def compute(x, weight, bias, stride, padding, *rest):
        if transposed:
            output_padding, groups, dilation = rest
        else:
            (dilation, groups), output_padding = rest, [0] * dims
        stride, dilation = (list(v) * dims if len(v) == 1 else list(v) for v in (stride, dilation))
        if text_padding:
            total = [dilation[k] * (weight.shape[2 + k] - 1) if padding == "same" else 0 for k in range(dims)]
            widths = [(0, 0)] * (x.ndim - dims) + [(t // 2, t - t // 2) for t in total]
            x, padding = np.pad(x, widths), [0] * dims
        return convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)

    return compute


for _d in (1, 2, 3):
    reference(f"conv{_d}d")(convolution_like(_d))
    reference(f"conv{_d}d.padding")(convolution_like(_d, text_padding=True))
    reference(f"conv_transpose{_d}d" + (".input" if _d > 1 else ""))(convolution_like(_d, transposed=True))

# Pooling: windows gathered by position; positions outside the input are -1


def window_positions(sizes, kernel, stride, padding, dilation, ceil_mode):
    """For each dimension, the positions of each window's elements."""
    out = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation):
        span = n + 2 * p - d * (k - 1) - 1
        count = (-(-span // s) if ceil_mode else span // s) + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        out.append(np.arange(count)[:, None] * s - p + np.arange(k) * d)
    return out


def windows(x, positions, fill):
    """x with each of its last dimensions replaced by (window, element)."""
    dims = len(positions)
    for k, at in enumerate(positions):
        axis = x.ndim - (dims - k) if k == 0 else axis + 2
        inside = (at >= 0) & (at < x.shape[axis])
        x = np.take(x, np.where(inside, at, 0), axis)
        shape = [1] * x.ndim
        shape[axis], shape[axis + 1] = at.shape
        x = np.where(inside.reshape(shape), x, fill)
    first = x.ndim - 2 * dims
    order = list(range(first)) + [first + 2 * k for k in range(dims)] + [first + 2 * k + 1 for k in range(dims)]
    x = x.transpose(order)
    return x.reshape(x.shape[: first + dims] + (-1,))


def lists(dims, *values):
    return [list(v) * dims if len(v) == 1 else list(v) for v in values]


def max_pool(dims, with_indices):
    def compute(x, kernel, stride, padding, dilation, ceil_mode):
        kernel, stride, padding, dilation = lists(dims, kernel, stride or kernel, padding, dilation)
        sizes = x.shape[-dims:]
        positions = window_positions(sizes, kernel, stride, padding, dilation, ceil_mode)
        low = -np.inf if x.dtype.kind == "f" else np.iinfo(np.int64).min
        w = windows(x, positions, low)
        if not with_indices:
            return w.max(-1)
        flat = windows(np.broadcast_to(np.arange(math.prod(sizes)).reshape(sizes), x.shape), positions, -1)
        best = np.where(flat >= 0, w, low).argmax(-1)[..., None]
        return w.max(-1), np.take_along_axis(flat, best, -1)[..., 0]

    return compute


def avg_pool(dims):
    def compute(x, kernel, stride, padding, ceil_mode, count_pad, divisor=None):
        kernel, stride, padding = lists(dims, kernel, stride or kernel, padding)
        sizes = x.shape[-dims:]
        positions = window_positions(sizes, kernel, stride, padding, [1] * dims, ceil_mode)
        sums = windows(x, positions, 0).sum(-1)
        if divisor:
            return sums / divisor
        count = np.ones(())
        for n, p, at in zip(sizes, padding, positions):
            low, high = (-p, n + p) if count_pad else (0, n)
            count = np.multiply.outer(count, ((at >= low) & (at < high)).sum(-1))
        return sums / count

    return compute


for _d in (1, 2, 3):
    reference(f"max_pool{_d}d")(max_pool(_d, False))
    reference(f"max_pool{_d}d_with_indices")(max_pool(_d, True))
    reference(f"avg_pool{_d}d")(avg_pool(_d))
reference("_max_pool")(lambda x, kernel, *a: max_pool(len(kernel), True)(x, kernel, *a))
reference("_avg_pool")(lambda x, kernel, *a: avg_pool(len(kernel))(x, kernel, *a))


@reference("_adaptive_avg_pool")
def adaptive_avg_pool(x, sizes):
    for k, out in enumerate(sizes):
        axis = x.ndim - len(sizes) + k
        n = x.shape[axis]
        parts = [along(x, axis, slice(i * n // out, -(-(i + 1) * n // out))).mean(axis, keepdims=True) for i in range(out)]
        x = np.concatenate(parts, axis) if parts else along(x, axis, slice(0, 0))
    return x


for _d in (1, 2, 3):
    reference(f"adaptive_avg_pool{_d}d")(lambda x, sizes, _d=_d: adaptive_avg_pool(x, lists(_d, sizes)[0]))

# Images and attention


@reference("pixel_shuffle")
def pixel_shuffle(x, r):
    *lead, c, h, w = x.shape
    y = x.reshape(*lead, c // r**2, r, r, h, w)
    n = len(lead)
    return y.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*lead, c // r**2, h * r, w * r)


@reference("pixel_unshuffle")
def pixel_unshuffle(x, r):
    *lead, c, h, w = x.shape
    n = len(lead)
    y = x.reshape(*lead, c, h // r, r, w // r, r)
    return y.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*lead, c * r**2, h // r, w // r)


@reference("channel_shuffle")
def channel_shuffle(x, groups):
    return np.swapaxes(x.reshape(x.shape[0], groups, -1, *x.shape[2:]), 1, 2).reshape(x.shape)


@reference("upsample_nearest1d", "upsample_nearest2d")
def upsample_nearest(x, sizes, *scales):
    for k, (out, scale) in enumerate(zip(sizes, scales)):
        axis = x.ndim - len(sizes) + k
        ratio = 1 / scale if scale else x.shape[axis] / out
        x = np.take(x, np.minimum((np.arange(out) * np.float32(ratio)).astype(int), x.shape[axis] - 1), axis)
    return x


@reference("upsample_bilinear2d")
def upsample_bilinear(x, sizes, align_corners, *scales):
    for k, (out, scale) in enumerate(zip(sizes, scales)):
        axis = x.ndim - len(sizes) + k
        n = x.shape[axis]
        if align_corners:
            at = np.arange(out) * ((n - 1) / (out - 1) if out > 1 else 0)
        else:
            at = np.maximum((np.arange(out) + 0.5) * (1 / scale if scale else n / out) - 0.5, 0)
        low = np.minimum(at.astype(int), n - 1)
        high = np.minimum(low + 1, n - 1)
        shape = [1] * x.ndim
        shape[axis] = -1
        part = (at - low).reshape(shape)
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return x


@reference("scaled_dot_product_attention")
def attention(q, k, v, mask, dropout, causal, scale, grouped):
    if grouped:
        k, v = (np.repeat(t, q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return safe_softmax(scores, -1) @ v


reference("einsum")(lambda equation, tensors, path: np.einsum(equation.replace(" ", ""), *tensors))
reference("cdist")(lambda a, b, p, mode: vector_norm(a[..., :, None, :] - b[..., None, :, :], p, (-1,)))


@reference("im2col")
def im2col(x, kernel, dilation, padding, stride):
    kernel, dilation, padding, stride = lists(2, kernel, dilation, padding, stride)
    w = windows(x, window_positions(x.shape[-2:], kernel, stride, padding, dilation, False), 0)
    w = np.moveaxis(w, -1, -3)
    return w.reshape(x.shape[:-3] + (x.shape[-3] * w.shape[-3], -1))


# Sorting and searching


def sort_order(x, dim, descending):
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    return np.flip(x.shape[dim] - 1 - np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)


def sorted_with_order(x, dim, descending):
    if x.ndim == 0:
        return x, np.int64(0)
    order = sort_order(x, dim, descending)
    return np.take_along_axis(x, order, dim), order


reference("sort")(sorted_with_order)
reference("sort.stable")(lambda x, stable, dim, descending: sorted_with_order(x, dim, descending))
reference("argsort")(lambda x, dim, descending: sorted_with_order(x, dim, descending)[1])
reference("argsort.stable")(lambda x, stable, dim, descending: sorted_with_order(x, dim, descending)[1])
reference("msort")(lambda x: np.sort(x, 0) if x.ndim else x)
reference("topk")(lambda x, k, dim, largest, ordered: tuple(along(t, dim, slice(0, k)) if x.ndim else t for t in sorted_with_order(x, dim, largest)))


def kth(x, k, dim, keepdim):
    values, order = sorted_with_order(x, dim, False)
    if x.ndim == 0:
        return values, order
    index = slice(k - 1, k) if keepdim else k - 1
    return along(values, dim, index), along(order, dim, index)


reference("kthvalue")(kth)
reference("median.dim")(lambda x, dim, keepdim: kth(x, (x.shape[dim] + 1) // 2 if x.ndim else 1, dim, keepdim))
reference("median")(lambda x: np.sort(x.reshape(-1))[(x.size - 1) // 2] if x.size else np.nan)
reference("isin.Tensor_Tensor")(lambda x, of, unique, invert: np.isin(x, of, invert=invert))
reference("argwhere")(np.argwhere)
reference("nonzero_numpy")(lambda x: np.nonzero(np.atleast_1d(x)))
reference("bincount")(lambda x, weights, least: np.bincount(x, weights, least))
reference("bucketize.Tensor")(lambda x, edges, int32, right: np.searchsorted(edges, x, "right" if right else "left"))


@reference("searchsorted.Tensor")
def searchsorted(sequence, x, int32, right, side, sorter):
    side = side or ("right" if right else "left")
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter, -1)
    if sequence.ndim == 1:
        return np.searchsorted(sequence, x, side)
    rows = zip(sequence.reshape(-1, sequence.shape[-1]), x.reshape(-1, x.shape[-1]))
    return np.stack([np.searchsorted(s, v, side) for s, v in rows]).reshape(x.shape)


# The rest

reference("polar")(lambda r, a: r * np.exp(1j * a))
reference("diff")(lambda x, n, dim, prepend, append: np.diff(x, n, dim, **{k: v for k, v in (("prepend", prepend), ("append", append)) if v is not None}))
reference("trapezoid.dx")(lambda y, dx, dim: np.trapezoid(y, dx=dx, axis=dim))
reference("frobenius_norm.dim")(lambda x, dim, keepdim: vector_norm(x, 2, dim, keepdim))
reference("isclose")(lambda a, b, relative, absolute, nan: np.isclose(a, b, relative, absolute, nan))
reference("nanmean")(lambda x, dim, keepdim, dtype: np.nanmean(cast(x, dtype), axis=axes(dim, x.ndim), keepdims=keepdim))
reference("pairwise_distance")(lambda a, b, p, eps, keepdim: vector_norm(a - b + eps, p, (-1,), keepdim))
reference("_standardize")(lambda x, dim, eps: standardize(x, tuple(dim), eps)[:2] + (x.var(tuple(dim), keepdims=True),))


@reference("diagonal_scatter")
def diagonal_scatter(x, source, offset, dim1, dim2):
    out = x.copy()
    view = np.diagonal(out, offset, dim1, dim2)
    view.flags.writeable = True
    view[...] = source
    return out

arrangement_references.add_to(REFERENCES)
