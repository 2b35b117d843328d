"""Functions whose arguments are sorted in Python before an operator runs: they go before the table's own."""
from . import _C
from ._C import Tensor
from ._composites import _write
from .overrides import dispatched, public_in

__all__ = []
_function = public_in(__all__)


def _method(name):
    def decorate(function):
        setattr(Tensor, name, dispatched(function, name, method=True))
        return function

    return decorate


def _tensor_list(tensors):
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


@_function
def broadcast_tensors(*tensors):
    """The tensors, expanded to the size that they broadcast to."""
    return _C.broadcast_tensors(_tensor_list(tensors))


@_function
def meshgrid(*tensors, indexing=None):
    """The coordinates of a grid, one tensor for each axis. indexing: "ij", or "xy" for columns first."""
    return _C.meshgrid(_tensor_list(tensors), indexing=indexing or "ij")


@_function
def block_diag(*tensors):
    """Matrices along the diagonal, zeros elsewhere."""
    return _C.block_diag(_tensor_list(tensors))


@_function
def cartesian_prod(*tensors):
    """All combinations of elements of 1-dim tensors, one a row."""
    return _C.cartesian_prod(_tensor_list(tensors))


def _for_each(name):
    """f(a, b, ...) of an operator on one tensor."""
    operator = getattr(_C, name)

    def function(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return operator(tensors[0])
        return tuple(operator(x) for x in _tensor_list(tensors))

    function.__name__, function.__doc__ = name, operator.__doc__
    globals()[name] = _function(function)


for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    _for_each(_name)


@_function
def einsum(equation, *operands):
    """The sum of products that an equation ("ij,jk->ik") names, or lists of numbers after each operand."""
    if not isinstance(equation, str):
        return _einsum_of_lists(equation, *operands)
    return _C.einsum(equation, _tensor_list(operands))


def _einsum_of_lists(*args):
    letter = (lambda n: "..." if n is Ellipsis  # noqa: E731
              else chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26))
    count = len(args) // 2 * 2
    equation = ",".join("".join(map(letter, names)) for names in args[1:count:2])
    if len(args) % 2:
        equation += "->" + "".join(map(letter, args[-1]))
    return _C.einsum(equation, list(args[0:count:2]))


@_function
def tensordot(a, b, dims=2, out=None):
    """The sum of products over pairs of dimensions: a's last with b's first, or as `dims` lists them."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.dim() else dims.item()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot: dims={dims} is more than the tensors have ({a.dim()} and "
                               f"{b.dim()})")
        dims = list(range(a.dim() - dims, a.dim())), list(range(dims))
    dims = [[d] if isinstance(d, int) else list(d) for d in dims]
    # A dimension of size 1 meets one of any size.
    for i, j in zip(*dims) if len(dims[0]) == len(dims[1]) else ():
        if a.size(i) == 1 != b.size(j):
            b = b.sum(j, keepdim=True)
        elif b.size(j) == 1 != a.size(i):
            a = a.sum(i, keepdim=True)
    return _write(_C.tensordot(a, b, *dims), out)


@_function
def trapezoid(y, x=None, *, dx=1, dim=-1):
    """Integrals along a dimension by the trapezoidal rule."""
    if x is None:
        return _C.trapezoid(y, dx=dx, dim=dim)
    count = y.size(dim)
    if count == 0:
        return y.sum(dim)
    if x.dim() == 1 and x.size(0) != count:
        raise RuntimeError(f"trapezoid: `x` has {x.size(0)} values for {count} samples")
    return _C.trapezoid(y, x, dim=dim)


trapz = trapezoid
__all__.append("trapz")


@_function
def nonzero(input, *, as_tuple=False, out=None):
    """The indices of elements that are not 0: one a row, or a tuple of one tensor for each dimension."""
    if not as_tuple:
        return _C.nonzero(input, out=out)
    if input.dim() == 0:
        input = input.unsqueeze(0)
    return tuple(_C.nonzero(input).unbind(1))


@_method("nonzero")
def _nonzero_method(self, *, as_tuple=False):
    return nonzero(self, as_tuple=as_tuple)


@_function
def where(condition, input=None, other=None, *, out=None):
    """Elements of input where condition is true, else of other; condition alone: nonzero(as_tuple=True)."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if out is None:
        return _C.where(condition, input, other)
    return _C.where(condition, input, other, out=out)


@_function
def split(tensor, split_size_or_sections, dim=0):
    """Parts along a dimension, of one size (the last may be smaller) or of the sizes listed: views."""
    return tensor.split(split_size_or_sections, dim)


@_method("split")
def _split_method(self, split_size, dim=0):
    if isinstance(split_size, (list, tuple)):
        return _C.split_with_sizes(self, split_size, dim)
    return _C.split(self, split_size, dim)


@_function
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The norm of all elements, or along dimensions; of matrices for "fro" and "nuc"."""
    if not (input.dtype.is_floating_point or input.dtype.is_complex) and dtype is None:
        raise RuntimeError(f"linalg.vector_norm: input has dtype {input.dtype}; give floating point or "
                           "complex values, or dtype")
    dims = [dim] if isinstance(dim, int) else None if dim is None else list(dim)
    if p == "nuc":
        if dims is not None and len(dims) != 2:
            raise RuntimeError(f"linalg.matrix_norm: dim needs two dimensions, not {dims}")
        return _write(_nuclear_norm(input, dims, keepdim, dtype), out)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm(): as a string p can be 'fro' or 'nuc', not {p}")
    order = 2.0 if p in ("fro", None) else p
    return _write(_C.linalg_vector_norm(input, order, dims, keepdim, dtype=dtype), out)


def _nuclear_norm(input, dims, keepdim, dtype):
    from . import linalg

    x = input if dtype is None else input.to(dtype)
    if dims is None and x.dim() != 2:
        raise RuntimeError(f"linalg.matrix_norm: a matrix is needed where dim is not given, not {x.dim()} "
                           "dimensions")
    return linalg.matrix_norm(x, "nuc", tuple(dims or (-2, -1)), keepdim)


@_method("norm")
def _norm_method(self, p="fro", dim=None, keepdim=False, dtype=None):
    return norm(self, p, dim, keepdim, dtype=dtype)


@_function
def normal(*args, requires_grad=False, layout=None, pin_memory=False, **kwargs):
    """Normal numbers: mean and standard deviation are tensors that broadcast, or two numbers and a size."""
    result = _C.normal(*args, **kwargs)
    return result.requires_grad_() if requires_grad else result


def _with_constant_statistics(name):
    """A normalisation whose second and third result, the statistics, carry no gradient."""
    operator = getattr(_C, name)

    def function(*args, out=None, **kwargs):
        result, *statistics = operator(*args, **kwargs)
        results = result, *(s.detach() for s in statistics)
        return results if out is None else tuple(map(_write, results, out))

    function.__name__, function.__doc__ = name, operator.__doc__
    globals()[name] = _function(function)


for _name in ("native_batch_norm", "native_layer_norm"):
    _with_constant_statistics(_name)


@_function
def conj_physical(input, *, out=None):
    """The complex conjugate in memory of its own; a real input itself."""
    return _C.conj_physical(input, out=out) if out is not None or input.is_complex() else input


@_method("conj_physical")
def _conj_physical(self):
    return conj_physical(self)


@_function
def geqrf(input, *, out=None):
    """A QR decomposition as LAPACK gives it: R with the reflections below its diagonal, and their factors."""
    results = _C.geqrf(input)
    return results if out is None else type(results)(map(_write, results, out))


@_function
def multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    """Draws of positions along the last dimension, by weights that need not add up to 1."""
    if out is not None and out.dtype is not _C.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype}")
    return _C.multinomial(input, num_samples, replacement, generator=generator, out=out)


def _grid_sampler(name):
    """A sampler that gives the grid a gradient of 0 where it takes the nearest pixel."""
    operator = getattr(_C, name)

    def function(input, grid, interpolation_mode, padding_mode, align_corners):
        out = operator(input, grid, interpolation_mode, padding_mode, align_corners)
        if interpolation_mode == 1 and grid.requires_grad and _C.is_grad_enabled():
            out = out + (grid.clamp(-1, 1).nan_to_num() * 0).sum()
        return out

    function.__name__, function.__doc__ = name, operator.__doc__
    globals()[name] = _function(function)


for _name in ("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"):
    _grid_sampler(_name)


def _resize_with_antialias(name):
    """One that takes factors for all dimensions at once, too."""
    operator = getattr(_C, name)

    def function(input, output_size, align_corners, scales_h=None, scales_w=None, *, scale_factors=None):
        if scale_factors is not None:
            scales_h, scales_w = scale_factors
            if output_size is None:
                output_size = [int(n * s) for n, s in zip(input.shape[-2:], scale_factors)]
        return operator(input, output_size, align_corners, scales_h, scales_w)

    function.__name__, function.__doc__ = name, operator.__doc__
    globals()[name] = _function(function)


for _name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
    _resize_with_antialias(_name)

_bernoulli_of_number = Tensor.bernoulli_


@_method("polygamma_")
def _polygamma(self, n):
    """polygamma() in place."""
    return self.copy_(_C.polygamma(n, self))


@_method("bernoulli_")
def _bernoulli(self, p=0.5, *, generator=None):
    """Elements become 1 with probability p, a number or a tensor of them, and 0 otherwise."""
    if isinstance(p, Tensor):
        return self.copy_(_C.bernoulli(p.expand(self.shape), generator=generator))
    return _bernoulli_of_number(self, p, generator=generator)


def _in_double(value):
    """A number in the place of a tensor."""
    if isinstance(value, Tensor):
        return value
    return _C.tensor(value, dtype=_C.complex128 if isinstance(value, complex) else _C.float64)


@_function
def float_power(input, exponent, *, out=None):
    """input ** exponent in float64, or complex128; one of them may be a number."""
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError("float_power(): expected a Tensor as input or exponent, got "
                        f"{type(input).__name__} and {type(exponent).__name__}")
    return _C.float_power(_in_double(input), _in_double(exponent), out=out)


@_method("float_power")
def _float_power(self, exponent):
    return float_power(self, exponent)


@_method("float_power_")
def _float_power_in_place(self, exponent):
    """float_power() in place."""
    result = float_power(self, exponent)
    if self.dtype is not result.dtype:
        raise RuntimeError(f"float_power_: the tensor has dtype {self.dtype}, but the result has "
                           f"{result.dtype}")
    return self.copy_(result)


def _value_for(sequence, value):
    """A number as a tensor to look for in a sequence."""
    if isinstance(value, Tensor):
        return value
    dtype = sequence.dtype if sequence.is_floating_point() else None
    return _C.tensor(value, dtype=dtype or (_C.float64 if isinstance(value, float) else _C.int64))


@_function
def searchsorted(sorted_sequence, input, **options):
    """Where to insert values, a tensor or one number, into an ascending sequence so that it stays so."""
    return _C.searchsorted(sorted_sequence, _value_for(sorted_sequence, input), **options)


@_function
def bucketize(input, boundaries, **options):
    """Between which boundaries values lie, a tensor or one number: searchsorted() of one sequence."""
    return _C.bucketize(_value_for(boundaries, input), boundaries, **options)


@_method("fill_diagonal_")
def _fill_diagonal(self, fill_value, wrap=False):
    """Writes a number on the main diagonal."""
    if self.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.dim() > 2 and len(set(self.shape)) > 1:
        raise RuntimeError(f"fill_diagonal_: more than two dimensions must all have the same size, not "
                           f"{tuple(self.shape)}")
    step = sum(self.stride())
    size = min(self.shape)
    self.as_strided((size,), (step,), self.storage_offset()).fill_(fill_value)
    if wrap and self.dim() == 2 and self.size(0) > self.size(1) + 1:
        self[self.size(1) + 1:].fill_diagonal_(fill_value, wrap)
    return self


def _complex_draws(name, scale):
    """Draws of complex numbers: real and imaginary parts of their own."""
    operator = getattr(_C, name)

    def function(*args, dtype=None, **kwargs):
        wanted = dtype or (args[0].dtype if name.endswith("_like") else None)
        if wanted is None or not wanted.is_complex:
            return operator(*args, dtype=dtype, **kwargs)
        real = wanted.to_real()
        requires_grad = kwargs.pop("requires_grad", False)
        if name.endswith("_like"):
            args = (args[0].real, *args[1:])
        made = _C.complex(operator(*args, dtype=real, **kwargs),
                          operator(*args, dtype=real, **kwargs)) * scale
        return made.requires_grad_() if requires_grad else made

    function.__name__, function.__doc__ = name, operator.__doc__
    globals()[name] = _function(function)


for _name, _scale in (("rand", 1), ("rand_like", 1), ("randn", 0.5**0.5), ("randn_like", 0.5**0.5)):
    _complex_draws(_name, _scale)


def _copies_into(name):
    """A copy of several views, written into given tensors."""
    operator = getattr(_C, name)

    def function(*args, out=None, **kwargs):
        copies = operator(*args, **kwargs)
        if out is None:
            return copies
        for target, value in zip(out, copies):
            _write(value, target)
        return None

    function.__name__, function.__doc__ = name, operator.__doc__
    globals()[name] = _function(function)


for _name in ("unbind_copy", "split_copy", "split_with_sizes_copy"):
    _copies_into(_name)


@_function
def chain_matmul(*matrices, out=None):
    """The product of matrices, in the order that needs the fewest operations."""
    return _write(_C.chain_matmul(_tensor_list(matrices)), out)


@_method("backward")
def _backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the gradients of this tensor (times `gradient`) to `.grad` of the leaves, or of `inputs` only."""
    from .autograd import backward

    backward([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs=inputs)
