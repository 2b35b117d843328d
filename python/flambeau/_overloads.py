"""Functions whose arguments PyTorch sorts in Python before an operator runs: they stand before the table's own names."""
from . import _C
from ._C import Tensor
from ._composites import _tensor_list, _write
from .overrides import dispatched

__all__ = []


def _function(function):
    __all__.append(function.__name__)
    return dispatched(function)


def _method(name):
    def decorate(function):
        setattr(Tensor, name, dispatched(function, name, method=True))
        return function

    return decorate


@_function
def broadcast_tensors(*tensors):
    """The tensors, expanded to the size that they broadcast to."""
    return _C.broadcast_tensors(_tensor_list(tensors))


@_function
def meshgrid(*tensors, indexing=None):
    """The coordinates of a grid, one tensor for each axis. indexing: "ij", or "xy" for columns first."""
    return _C.meshgrid(_tensor_list(tensors), indexing=indexing or "ij")


@_function
def atleast_1d(*tensors):
    """Tensors with one dimension or more."""
    return _each(tensors, lambda x: x.reshape(1) if x.dim() == 0 else x)


@_function
def atleast_2d(*tensors):
    """Tensors with two dimensions or more."""
    return _each(tensors, lambda x: x.reshape(1, -1) if x.dim() < 2 else x)


def _each(tensors, change):
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return change(tensors[0])
    return tuple(change(x) for x in _tensor_list(tensors))


@_function
def einsum(equation, *operands):
    """The sum of products that an equation names ("ij,jk->ik"); or operands each followed by a list of numbers."""
    if not isinstance(equation, str):
        return _einsum_of_lists(equation, *operands)
    return _C.einsum(equation, _tensor_list(operands))


def _einsum_of_lists(*args):
    letter = lambda n: "..." if n is Ellipsis else (chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26))  # noqa: E731
    count = len(args) // 2 * 2
    equation = ",".join("".join(map(letter, names)) for names in args[1:count:2])
    if len(args) % 2:
        equation += "->" + "".join(map(letter, args[-1]))
    return _C.einsum(equation, list(args[0:count:2]))


@_function
def tensordot(a, b, dims=2, out=None):
    """The sum of products over pairs of dimensions: the last of a with the first of b, or as `dims` lists them."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.dim() else dims.item()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = list(range(a.dim() - dims, a.dim())), list(range(dims))
    return _write(_C.tensordot(a, b, list(dims[0]), list(dims[1])), out)


@_function
def trapezoid(y, x=None, *, dx=1, dim=-1):
    """Integrals along a dimension by the trapezoidal rule."""
    if x is None:
        return _C.trapezoid(y, dx=dx, dim=dim)
    from ._composites import trapezoid_at

    return trapezoid_at(y, x, dim)


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
    """Elements of input where condition is true, of other elsewhere; the condition alone: nonzero(as_tuple=True)."""
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
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {input.dtype}")
    dims = [dim] if isinstance(dim, int) else None if dim is None else list(dim)
    if p == "nuc":
        if dims is not None and len(dims) != 2:
            raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dims}")
        return _write(_nuclear_norm(input, dims, keepdim, dtype), out)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    order = 2.0 if p in ("fro", None) else p
    return _write(_C.linalg_vector_norm(input, order, dims, keepdim, dtype=dtype), out)


def _nuclear_norm(input, dims, keepdim, dtype):
    from . import linalg

    x = input if dtype is None else input.to(dtype)
    if dims is None and x.dim() != 2:
        raise RuntimeError(f"linalg.matrix_norm: The input tensor A must have at least 2 dimensions. Got {x.dim()}")
    return linalg.matrix_norm(x, "nuc", tuple(dims or (-2, -1)), keepdim)


@_method("norm")
def _norm_method(self, p="fro", dim=None, keepdim=False, dtype=None):
    return norm(self, p, dim, keepdim, dtype=dtype)


@_function
def normal(mean, std=1.0, size=None, *, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=None,
           requires_grad=False):
    """Normal numbers of given means and standard deviations: tensors that broadcast, or two numbers and a size."""
    if size is not None:
        mean = _C.full(size, float(mean), dtype=dtype, device=device)
    like = mean if isinstance(mean, Tensor) else std
    if not isinstance(like, Tensor):
        raise TypeError("normal(): expected a Tensor as mean or std, or two numbers and a size")
    spread = std if isinstance(std, Tensor) else None
    if spread is not None and spread.is_complex():
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if (spread is not None and spread.numel() and bool((spread < 0).any())) or (spread is None and std < 0):
        raise RuntimeError("normal expects all elements of std >= 0.0" if spread is not None
                           else f"normal expects std >= 0.0, but found std {std}")
    shape = _C.broadcast_tensors([like, spread])[0].shape if spread is not None and spread is not like else like.shape
    draws = _C.randn(shape, dtype=like.dtype, device=like.device, generator=generator)
    result = _write(draws * std + mean, out)
    return result.requires_grad_() if requires_grad else result


@_function
def chain_matmul(*matrices, out=None):
    """The product of matrices, in the order that needs the fewest operations."""
    from . import linalg

    return _write(linalg.multi_dot(_tensor_list(matrices)), out)


@_method("backward")
def _backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the gradients of this tensor (times `gradient`) to `.grad` of the leaves, or of `inputs` only."""
    from .autograd import backward

    backward([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs=inputs)
