"""Functions that are short compositions of operators; one that the table of operators has too yields to it.
"""
import itertools
import math

from . import _C
from ._C import Tensor
from .overrides import dispatched

__all__ = []
_python_range, _python_sorted = range, sorted


def _public(function, *, method=False, always=False):
    name = function.__name__
    if not always and isinstance(getattr(_C, name, None), _C._Operator):
        return getattr(_C, name)
    __all__.append(name)
    if method:
        setattr(Tensor, name, dispatched(function, name, method=True))
    return dispatched(function)


def _both(function):
    """A function that is a method of Tensor too."""
    return _public(function, method=True)


def _always(function):
    """The same, before an operator of that name: its arguments are other ones."""
    return _public(function, method=True, always=True)


def _write(result, out):
    """The result in the tensor `out`, where one is given."""
    if out is None:
        return result
    if not _C.can_cast(result.dtype, out.dtype):
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
    return value.to("meta") if isinstance(value, Tensor) else value


_C.can_cast = can_cast
__all__ += ["can_cast", "promote_types", "result_type"]


# ---- comparison


@_both
def equal(input, other):
    """Whether two tensors have the same size and elements."""
    if input.dtype is not other.dtype:
        raise RuntimeError(f"Expected object of data type {input.dtype} but got data type {other.dtype} for "
                           "argument 'other' in call to equal")
    return input.size() == other.size() and bool((input == other).all())


@_both
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |input - other| <= atol + rtol |other| everywhere."""
    return bool(_C.isclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan).all())


# ---- shapes


def _tensor_list(tensors):
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


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


@_public
def column_stack(tensors, *, out=None):
    """Side by side, 1-dim tensors as columns."""
    return _write(_C.hstack([t.reshape(t.numel(), 1) if t.dim() <= 1 else t for t in tensors]), out)


@_public
def dstack(tensors, *, out=None):
    """One behind the other, along the third dimension."""
    if not tensors:
        raise RuntimeError("dstack expects a non-empty TensorList")
    from ._overloads import atleast_3d

    return _write(_C.cat([atleast_3d(t) for t in tensors], 2), out)


def _split_along(name, dim, rank):
    def split(input, indices_or_sections):
        axis = dim(input)
        if input.dim() < rank:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {rank} dimension, but got a "
                               f"tensor with {input.dim()} dimensions!")
        if isinstance(indices_or_sections, int) and (
                indices_or_sections <= 0 or input.size(axis) % indices_or_sections):
            raise RuntimeError(f"torch.{name}: {indices_or_sections} sections of equal size do not fit "
                               f"dimension {axis} of size {input.size(axis)}")
        return _C.tensor_split(input, indices_or_sections, axis)

    split.__name__, split.__doc__ = name, f"tensor_split along dimension {rank - 1}."
    return _both(split)


hsplit = _split_along("hsplit", lambda x: 0 if x.dim() == 1 else 1, 1)
vsplit = _split_along("vsplit", lambda x: 0, 2)
dsplit = _split_along("dsplit", lambda x: 2, 3)


@_both
def fliplr(input):
    """Columns in reverse order."""
    if input.dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return input.flip(1)


@_both
def flipud(input):
    """Rows in reverse order."""
    if input.dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return input.flip(0)


@_both
def ravel(input):
    """All elements in one dimension."""
    return input.contiguous().view(-1)


@_both
def diag(input, diagonal=0, *, out=None):
    """The diagonal of a matrix, or the matrix with a diagonal."""
    if input.dim() not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.dim()}D")
    result = _C.diag_embed(input, diagonal) if input.dim() == 1 else _C.diagonal(input, diagonal).clone()
    return _write(result, out)


@_both
def diagflat(input, offset=0):
    """The matrix with the elements of input on a diagonal."""
    return _C.diag_embed(input.reshape(-1), offset)


@_public
def block_diag(*tensors):
    """Matrices along the diagonal, zeros elsewhere."""
    blocks = []
    for k, t in enumerate(tensors):
        if t.dim() > 2:
            raise RuntimeError(f"torch.block_diag needs matrices, vectors or scalars, but tensor number {k} "
                               f"has {t.dim()} dimensions")
        blocks.append(t.reshape(1, -1) if t.dim() < 2 else t)
    width = sum(b.size(1) for b in blocks)
    rows, at = [], 0
    for b in blocks:
        rows.append(_C.constant_pad_nd(b, [at, width - at - b.size(1)]))
        at += b.size(1)
    return _C.cat(rows, 0)


@_public
def cartesian_prod(*tensors):
    """All combinations of elements of 1-dim tensors, one a row."""
    for t in tensors:
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return _C.stack([g.reshape(-1) for g in _C.meshgrid(list(tensors), indexing="ij")], 1)


@_public
def combinations(input, r=2, with_replacement=False):
    """All ways to take r elements of a 1-dim tensor, one a row."""
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return _C.empty((0,), dtype=input.dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(_python_range(input.numel()), r))
    if not rows:
        return input[:0].reshape(0, 1).expand(0, r)
    return input[_C.tensor(rows, dtype=_C.int64)]


@_both
def sum_to_size(input, *size):
    """The sum over the dimensions that broadcasting to input's size would add."""
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    shape = tuple(input.shape)
    lead = len(shape) - len(size)
    if lead < 0 or any(n not in (1, m) for n, m in zip(size, shape[lead:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    dims = list(_python_range(lead)) + [lead + d for d, n in enumerate(size) if n == 1
                                        and shape[lead + d] != 1]
    if not size:
        return input.sum()
    return input.sum(dims, keepdim=True).reshape(size) if dims else _C.alias(input)


@_both
def narrow_copy(input, dim, start, length, *, out=None):
    """A copy of narrow()."""
    return _write(_C.narrow(input, dim, start, length).clone(memory_format=_C.contiguous_format), out)


@_both
def new_empty_strided(input, size, stride, dtype=None, layout=None, device=None, pin_memory=False,
                      requires_grad=False):
    """An uninitialised tensor of given strides with this one's dtype."""
    result = _C.empty_strided(size, stride, dtype=dtype or input.dtype, device=device or input.device)
    return result.requires_grad_(requires_grad)


@_public
def empty_permuted(size, physical_layout, **options):
    """An uninitialised tensor whose dimensions lie in memory in the given order."""
    if sorted(d % max(len(size), 1) for d in physical_layout) != list(_python_range(len(size))):
        raise RuntimeError(f"Invalid physical layout {list(physical_layout)} for a tensor of {len(size)} "
                           "dimensions")
    made = _C.empty([size[d] for d in physical_layout], **options)
    return made.permute([physical_layout.index(d) for d in _python_range(len(size))])


# ---- arithmetic


@_both
def float_power(input, exponent, *, out=None):
    """input ** exponent in float64 (or complex128)."""
    values = [v for v in (input, exponent) if isinstance(v, Tensor)]
    if not values:
        raise TypeError("float_power() received an invalid combination of arguments - got two numbers")
    is_complex = (any(v.dtype.is_complex for v in values)
                  or any(isinstance(v, complex) for v in (input, exponent)))
    dtype = _C.complex128 if is_complex else _C.float64
    if out is not None and out.dtype is not dtype:
        raise RuntimeError(f"float_power: out= has dtype {out.dtype}, but the result has {dtype}")
    kind = complex if is_complex else float
    convert = lambda v: v.to(dtype) if isinstance(v, Tensor) else kind(v)  # noqa: E731
    return _write(_C.pow(convert(input), convert(exponent)), out)


def _float_power_(self, exponent):
    dtype = _C.complex128 if self.is_complex() or isinstance(exponent, complex) else _C.float64
    if self.dtype is not dtype:
        raise RuntimeError(f"float_power_: the tensor has dtype {self.dtype}, but the result has {dtype}")
    return self.copy_(_C.float_power(self, exponent)) if hasattr(_C, "float_power") else self.pow_(exponent)


Tensor.float_power_ = dispatched(_float_power_, "float_power_", method=True)


@_both
def ldexp(input, other, *, out=None):
    """input * 2 ** other."""
    if not isinstance(other, Tensor) or not isinstance(input, Tensor):
        raise TypeError(f"ldexp(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    return _write(_C.mul(input, _C.pow(2.0, other)), out)


def _ldexp_(self, other):
    return self.mul_(_C.pow(2.0, other))


Tensor.ldexp_ = dispatched(_ldexp_, "ldexp_", method=True)


@_both
def kron(input, other, *, out=None):
    """The Kronecker product."""
    rank = max(input.dim(), other.dim())
    a = input.reshape([1] * (rank - input.dim()) + list(input.shape))
    b = other.reshape([1] * (rank - other.dim()) + list(other.shape))
    a_shape = [n for m in a.shape for n in (m, 1)]
    b_shape = [n for m in b.shape for n in (1, m)]
    product = a.reshape(a_shape) * b.reshape(b_shape)
    return _write(product.reshape([n * m for n, m in zip(a.shape, b.shape)]), out)


@_public
def polar(abs, angle, *, out=None):
    """The complex number of an absolute value and an angle."""
    if not isinstance(angle, Tensor) or not isinstance(abs, Tensor):
        raise TypeError(f"polar(): expected two Tensors, got {type(abs).__name__} and {type(angle).__name__}")
    return _write(_C.complex(abs * angle.cos(), abs * angle.sin()), out)


@_public
def logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None,
             requires_grad=False):
    """base to the power of numbers evenly spaced from start to end."""
    wanted = dtype or _C.get_default_dtype()
    inner = wanted if wanted.is_floating_point or wanted.is_complex else _C.float64
    result = _C.pow(float(base), _C.linspace(start, end, steps, dtype=inner, device=device)).to(wanted)
    return _write(result, out).requires_grad_(requires_grad) if requires_grad else _write(result, out)


@_both
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariance matrix of variables in rows and observations in columns."""
    if input.dim() > 2:
        raise RuntimeError(f"cov() takes a matrix, a vector or a scalar, not {input.dim()} dimensions")
    if input.dtype is _C.bool:
        raise RuntimeError("cov() is not defined for bool: convert the input")
    x = input.reshape(1, -1) if input.dim() < 2 else input
    count = x.size(1)
    for w, name in ((fweights, "fweights"), (aweights, "aweights")):
        if w is not None and (w.dim() > 1 or w.numel() != count):
            raise RuntimeError(f"cov(): {name} needs one weight for each of the {count} observations, but "
                               f"has {w.numel()}")
    if fweights is not None and (fweights.dtype.is_floating_point or fweights.dtype.is_complex):
        raise RuntimeError("cov(): fweights counts repetitions, so its dtype must be integral, not "
                           f"{fweights.dtype}")
    if aweights is not None and not aweights.dtype.is_floating_point:
        raise RuntimeError(f"cov(): aweights must have a floating point dtype, not {aweights.dtype}")
    for v, name in ((fweights, "fweights"), (aweights, "aweights")):
        if v is not None and v.numel() and bool((v < 0).any()):
            raise RuntimeError(f"cov(): {name} cannot be negative")
    w = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    total = w.sum() if w is not None else _C.tensor(float(count))
    mean = (x * w).sum(1, keepdim=True) / total if w is not None else x.sum(1, keepdim=True) / total
    if w is not None and aweights is not None and correction != 0:
        norm = total - correction * (w * aweights).sum() / total
    else:
        norm = total - correction
    centred = x - mean
    weighted = centred * w if w is not None else centred
    other = centred.conj() if centred.is_complex() else centred
    result = (weighted @ other.t().to(weighted.dtype)) / norm.clamp(min=0)
    return result.squeeze()


@_both
def corrcoef(input):
    """The matrix of correlation coefficients of variables in rows."""
    if input.dim() > 2:
        raise RuntimeError(f"corrcoef() takes a matrix, a vector or a scalar, not {input.dim()} dimensions")
    c = cov(input)
    if c.dim() == 0:
        return c / c
    d = c.diagonal()
    d = (d.real if d.is_complex() else d).sqrt()
    c = c / d[:, None] / d[None, :]
    return _C.complex(c.real.clamp(-1, 1), c.imag.clamp(-1, 1)) if c.is_complex() else c.clamp(-1, 1)


def _steps(y, x, dim):
    """Differences of x that broadcast to those of y along dim."""
    axis = -1 if x.dim() == 1 else dim
    steps = x.narrow(axis, 1, x.size(axis) - 1) - x.narrow(axis, 0, x.size(axis) - 1)
    if x.dim() != 1:
        return steps
    shape = [1] * y.dim()
    shape[dim] = -1
    return steps.reshape(shape)


def trapezoid_at(y, x, dim):
    """The integral of y along dim, at the places x."""
    count = y.size(dim)
    if count == 0:
        return y.sum(dim) * 0
    if x.dim() == 1 and x.size(0) != count:
        raise RuntimeError(f"trapezoid: `x` has {x.size(0)} values for {count} samples")
    return ((y.narrow(dim, 0, count - 1) + y.narrow(dim, 1, count - 1)) * _steps(y, x, dim)).sum(dim) / 2.0


@_public
def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    """Cumulative integrals by the trapezoidal rule."""
    count = y.size(dim)
    below, above = y.narrow(dim, 0, count - 1), y.narrow(dim, 1, count - 1)
    if x is None:
        return ((below + above) * (dx / 2.0)).cumsum(dim)
    return ((below + above) * _steps(y, x, dim) / 2.0).cumsum(dim)


def _gradient_along(x, dim, spacing, edge_order):
    count = x.size(dim)
    part = lambda a, n: x.narrow(dim, a, n)  # noqa: E731
    if isinstance(spacing, Tensor):
        shape = [1] * x.dim()
        shape[dim] = -1
        steps = (spacing[1:] - spacing[:-1])
        before, after = steps[:-1].reshape(shape), steps[1:].reshape(shape)
        inner = (part(0, count - 2) * (-after / (before * (before + after)))
                 + part(1, count - 2) * ((after - before) / (before * after))
                 + part(2, count - 2) * (before / (after * (before + after))))
        first, second, last, last_but_one = (steps[0], steps[1] if count > 2 else None, steps[-1], steps[-2]
                                             if count > 2 else None)
    else:
        inner = (part(2, count - 2) - part(0, count - 2)) / (2 * spacing)
        first = second = last = last_but_one = spacing
    if edge_order == 1:
        start = (part(1, 1) - part(0, 1)) / first
        stop = (part(count - 1, 1) - part(count - 2, 1)) / last
    else:
        start = (part(0, 1) * (-(2 * first + second) / (first * (first + second)))
                 + part(1, 1) * ((first + second) / (first * second))
                 + part(2, 1) * (-first / (second * (first + second))))
        stop = (part(count - 3, 1) * (last / (last_but_one * (last + last_but_one)))
                + part(count - 2, 1) * (-(last + last_but_one) / (last * last_but_one))
                + part(count - 1, 1) * ((2 * last + last_but_one) / (last * (last + last_but_one))))
    return _C.cat([start, inner, stop], dim)


@_public
def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Central differences along dimensions: a tuple of tensors of input's size."""
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient(): edge_order can be 1 or 2, not {edge_order}")
    dims = list(_python_range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    dims = [d % max(input.dim(), 1) if -input.dim() <= d < input.dim() else _bad_dim(d, input.dim())
            for d in dims]
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"gradient(): dim {dims[0]} was given multiple times")
    spacing = 1 if spacing is None else spacing
    given = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(given) != len(dims):
        raise RuntimeError(f"gradient(): spacing holds {len(given)} entries for {len(dims)} dimensions: give "
                           "one number, or one entry per dimension")
    for d in dims:
        if input.size(d) < edge_order + 1:
            raise RuntimeError(f"torch.gradient: dimension {d} has size {input.size(d)}; "
                               f"edge_order={edge_order} needs {edge_order + 1} or more")
    x = input if input.dtype.is_floating_point or input.dtype.is_complex else input.to(_C.get_default_dtype())
    return tuple(_gradient_along(x, d, s, edge_order) for d, s in zip(dims, given))


def _bad_dim(d, rank):
    raise IndexError(f"dimension {d} is out of range: a tensor of {rank} dimensions takes {-rank} to "
                     f"{rank - 1}")


def _renorm(self, p, dim, maxnorm):
    others = [d for d in _python_range(self.dim()) if d != dim % self.dim()]
    norms = _C.linalg_vector_norm(self, p, others, True)
    return self * _C.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0).to(self.dtype)


@_both
def renorm(input, p, dim, maxnorm, *, out=None):
    """Parts along a dimension whose p-norm is above maxnorm, brought down to it."""
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: maxnorm must not be negative, got {maxnorm}")
    if input.dim() < 2:
        raise RuntimeError(f"renorm: a tensor of 2 or more dimensions is needed, this one has {input.dim()}")
    return _write(_renorm(input, p, dim, maxnorm), out)


def _renorm_(self, p, dim, maxnorm):
    return self.copy_(renorm(self.clone(), p, dim, maxnorm))


if "renorm_" not in vars(Tensor):
    Tensor.renorm_ = dispatched(_renorm_, "renorm_", method=True)


@_both
def unsafe_chunk(input, chunks, dim=0):
    """chunk() whose parts may be changed in place."""
    return _C.chunk(input, chunks, dim)


@_both
def unsafe_split(input, split_size, dim=0):
    """split() whose parts may be changed in place."""
    return _C.split(input, split_size, dim)


@_both
def unsafe_split_with_sizes(input, split_sizes, dim=0):
    return _C.split_with_sizes(input, split_sizes, dim)


@_both
def adjoint(input):
    """The conjugate transpose of the last two dimensions."""
    if input.dim() == 0:
        return input
    x = input.transpose(-2, -1)
    return x.conj() if x.is_complex() else x


# ---- copies of views

_VIEWS = ("alias", "as_strided", "detach", "diagonal", "expand", "permute", "select", "slice", "split",
          "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
          "view_as_complex", "view_as_real")


def _copy_of(name):
    view = getattr(_C, name)

    def function(*args, out=None, **kwargs):
        if name in ("expand", "permute", "view") and len(args) > 2:
            args = (args[0], args[1:])
        result = view(*args, **kwargs)
        if not isinstance(result, Tensor):
            copies = tuple(r.clone(memory_format=_C.contiguous_format) for r in result)
            if out is None:
                return copies
            for to, c in zip(out, copies):
                _write(c, to)
            return None
        return _write(result.clone(memory_format=_C.contiguous_format), out)

    function.__name__, function.__doc__ = f"{name}_copy", f"A copy of {name}()."
    globals()[function.__name__] = _public(function)


for _name in _VIEWS:
    if hasattr(_C, _name):
        _copy_of(_name)


# ---- unique


@_always
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements (or slices along dim), with where each came from and how often, if asked."""
    if dim is None:
        flat = input.reshape(-1)
        values, order = flat.sort(stable=True) if flat.numel() else (flat, flat.to(_C.int64))
        return _runs(values, order, input.shape, return_inverse, return_counts)
    if input.numel() == 0 and any(n == 0 for d, n in enumerate(input.shape) if d != dim % input.dim()):
        raise RuntimeError("unique: a dimension other than `dim` has size 0, so the slices are empty")
    rows = input.movedim(dim, 0).reshape(input.size(dim), -1)
    keys = rows.tolist()
    order_list = _python_sorted(_python_range(len(keys)), key=keys.__getitem__)
    firsts, inverse, counts = [], [0] * len(keys), []
    for place in order_list:
        if not firsts or keys[place] != keys[firsts[-1]]:
            firsts.append(place)
            counts.append(0)
        counts[-1] += 1
        inverse[place] = len(firsts) - 1
    values = input.index_select(dim, _C.tensor(firsts, dtype=_C.int64))
    return _selected(values, _C.tensor(inverse, dtype=_C.int64), _C.tensor(counts, dtype=_C.int64),
                     return_inverse, return_counts)


def _selected(values, inverse, counts, return_inverse, return_counts):
    out = [values] + [inverse] * return_inverse + [counts] * return_counts
    return out[0] if len(out) == 1 else tuple(out)


def _runs(values, order, shape, return_inverse, return_counts):
    """Runs of equal elements: one of each, the run of every element, the lengths."""
    count = values.numel()
    starts = _C.ones((count,), dtype=_C.bool)
    if count > 1:
        starts[1:] = values[1:] != values[:-1]
    run = starts.to(_C.int64).cumsum(0) - 1
    inverse = run
    if order is not None and return_inverse:
        inverse = _C.empty_like(run).scatter_(0, order, run) if count else run
    lengths = None
    if return_counts:
        at = starts.nonzero().reshape(-1)
        ends = _C.cat([at[1:], _C.tensor([count])]) if count else at
        lengths = ends - at
    return _selected(values[starts], inverse.reshape(shape), lengths, return_inverse, return_counts)


@_always
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of every run of equal elements (or slices along dim)."""
    if dim is None or input.dim() == 1:
        return _runs(input.reshape(-1), None, input.shape if dim is None else input.shape, return_inverse,
                     return_counts)
    rows = input.movedim(dim, 0).reshape(input.size(dim), -1)
    starts = _C.ones((rows.size(0),), dtype=_C.bool)
    if rows.size(0) > 1:
        starts[1:] = (rows[1:] != rows[:-1]).any(1)
    at = starts.nonzero().reshape(-1)
    ends = _C.cat([at[1:], _C.tensor([rows.size(0)])]) if rows.size(0) else at
    return _selected(input.index_select(dim, at), starts.to(_C.int64).cumsum(0) - 1, ends - at,
                     return_inverse, return_counts)


# ---- quantiles


def _quantile(input, q, dim, keepdim, interpolation, ignore_nan, name):
    if not input.dtype.is_floating_point or input.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(f"{name}() needs an input of dtype float or double, not {input.dtype}")
    q = q if isinstance(q, Tensor) else _C.tensor(q, dtype=input.dtype)
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}(): q has dtype {q.dtype}, but the input {input.dtype}: they must agree")
    if q.dim() > 1:
        raise RuntimeError(f"{name}(): q is one number or a vector, not {q.dim()} dimensions")
    if bool(((q < 0) | (q > 1)).any()):
        raise RuntimeError(f"{name}(): every q must lie in the range [0, 1]")
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(f"{name}(): interpolation is linear, lower, higher, midpoint or nearest, not "
                           f"{interpolation}")
    flat = dim is None
    x = input.reshape(-1) if flat else input.movedim(dim, -1) if input.dim() else input.reshape(1)
    ordered = x.sort(-1).values
    missing = ordered.isnan()
    if ignore_nan:
        last = ((~missing).sum(-1, keepdim=True) - 1).clamp(min=0).to(input.dtype)
    else:
        last = _C.full((*x.shape[:-1], 1), x.size(-1) - 1, dtype=input.dtype)
    at = q.reshape(-1) * last
    if not ignore_nan:
        at = _C.where(missing.any(-1, keepdim=True), _C.full_like(at, x.size(-1) - 1), at)
    at = {"lower": at.floor, "higher": at.ceil, "nearest": at.round}.get(interpolation, lambda: at)()
    below = ordered.gather(-1, at.floor().to(_C.int64))
    above = ordered.gather(-1, at.ceil().to(_C.int64))
    weight = (_C.full_like(at, 0.5).where(at != at.floor(), _C.zeros_like(at)) if interpolation == "midpoint"
              else at - at.floor())
    out = _C.lerp(below, above, weight)
    out = out.movedim(-1, 0)
    if keepdim:
        out = (out.reshape((out.size(0), *[1] * input.dim())) if flat
               else out.unsqueeze(1).movedim(1, dim % max(input.dim(), 1) + 1))
    return out if q.dim() else out.squeeze(0)


@_both
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """The q-th quantiles along a dimension, or of all elements."""
    return _write(_quantile(input, q, dim, keepdim, interpolation, False, "quantile"), out)


@_both
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """quantile() of the elements that are not nan."""
    return _write(_quantile(input, q, dim, keepdim, interpolation, True, "nanquantile"), out)


@_both
def nonzero_static(input, *, size, fill_value=-1, out=None):
    """The first `size` rows of nonzero(), filled up with rows of fill_value."""
    found = _C.nonzero(input)[:size]
    rest = _C.full((max(size - found.size(0), 0), input.dim()), fill_value, dtype=_C.int64)
    return _write(_C.cat([found, rest], 0), out)


@_public
def vander(x, N=None, increasing=False):
    """The Vandermonde matrix: powers of x, falling from the left unless increasing."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.size(0) if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    dtype = _C.int64 if not (x.dtype.is_floating_point or x.dtype.is_complex) else x.dtype
    powers = [x.to(dtype) ** k for k in _python_range(count)]
    if not powers:
        return _C.empty((x.size(0), 0), dtype=dtype)
    return _C.stack(powers if increasing else powers[::-1], 1)


def tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=None):
    """Rows and columns of the lower triangle."""
    return _C.tril(_C.ones((row, col), device=device),
                   offset).nonzero().t().contiguous().to(dtype or _C.int64)


def triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=None):
    """Rows and columns of the upper triangle."""
    return _C.triu(_C.ones((row, col), device=device),
                   offset).nonzero().t().contiguous().to(dtype or _C.int64)


@_public
def range(start, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """start, start + step, ..., end: like arange, end included."""
    if end is None:
        start, end = 0, start
    count = int(math.floor((end - start) / step)) + 1
    wanted = dtype or _C.get_default_dtype()
    result = (_C.arange(count, dtype=_C.float64, device=device) * step + start).to(wanted)
    return _write(result, out).requires_grad_(requires_grad) if requires_grad else _write(result, out)


for _name in ("tril_indices", "triu_indices"):
    globals()[_name] = _public(globals()[_name])


@_public
def poisson(input, generator=None):
    """Draws of Poisson distributions of the given rates: arrivals within one unit of time."""
    if input.numel() == 0:
        return input.clone()
    if bool((input < 0).any()):
        raise RuntimeError("poisson: a rate is negative")
    top = float(input.max())
    count = int(top + 12 * math.sqrt(top) + 12)
    waits = -_C.rand((count, *input.shape), dtype=_C.float64, generator=generator).clamp(min=1e-300).log()
    return (waits.cumsum(0) <= input).sum(0).to(input.dtype)
