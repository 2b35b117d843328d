"""Functions whose arguments PyTorch sorts in Python before an operator runs: they stand before the table's
own names.
"""
from . import _C, _composites
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


def _variadic(name):
    """f(a, b) of an operator over a list of tensors."""
    operator = getattr(_C, name, None)
    if not isinstance(operator, _C._Operator):
        return

    def function(*tensors):
        return operator(_tensor_list(tensors))

    function.__name__, function.__doc__ = name, operator.__doc__
    globals()[name] = _function(function)


for _name in ("block_diag", "cartesian_prod"):
    _variadic(_name)


@_function
def atleast_1d(*tensors):
    """Tensors with one dimension or more."""
    return _each(tensors, lambda x: x.reshape(1) if x.dim() == 0 else x)


@_function
def atleast_2d(*tensors):
    """Tensors with two dimensions or more."""
    return _each(tensors, lambda x: x.reshape(1, -1) if x.dim() < 2 else x)


@_function
def atleast_3d(*tensors):
    """Tensors with three dimensions or more."""

    def extend(x):
        if x.dim() < 2:
            return x.reshape(1, -1, 1)
        return x.unsqueeze(-1) if x.dim() == 2 else x

    return _each(tensors, extend)


@_function
def block_diag(*tensors):
    """Matrices along the diagonal, zeros elsewhere."""
    return _C.block_diag(_tensor_list(tensors))


@_function
def cartesian_prod(*tensors):
    """All combinations of elements of 1-dim tensors, one a row."""
    return _C.cartesian_prod(_tensor_list(tensors))


def _each(tensors, change):
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return change(tensors[0])
    return tuple(change(x) for x in _tensor_list(tensors))


@_function
def einsum(equation, *operands):
    """The sum of products that an equation names ("ij,jk->ik"); or operands each followed by a list of
    numbers.
    """
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
    """The sum of products over pairs of dimensions: the last of a with the first of b, or as `dims` lists
    them.
    """
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
    """Elements of input where condition is true, of other elsewhere; the condition alone:
    nonzero(as_tuple=True).
    """
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
def normal(mean, std=1.0, size=None, *, generator=None, out=None, dtype=None, layout=None, device=None,
           pin_memory=None, requires_grad=False):
    """Normal numbers of given means and standard deviations: tensors that broadcast, or two numbers and a
    size.
    """
    if size is not None:
        mean = _C.full(size, float(mean), dtype=dtype, device=device)
    like = mean if isinstance(mean, Tensor) else std
    if not isinstance(like, Tensor):
        raise TypeError("normal(): expected a Tensor as mean or std, or two numbers and a size")
    spread = std if isinstance(std, Tensor) else None
    if spread is not None and spread.is_complex():
        raise RuntimeError("normal(): std cannot be complex")
    if (spread is not None and spread.numel() and bool((spread < 0).any())) or (spread is None and std < 0):
        raise RuntimeError("normal(): std has negative elements" if spread is not None
                           else f"normal(): std={std} is negative")
    shape = (_C.broadcast_tensors([like, spread])[0].shape if spread is not None and spread is not like
             else like.shape)
    draws = _C.randn(shape, dtype=like.dtype, device=like.device, generator=generator)
    result = _write(draws * std + mean, out)
    return result.requires_grad_() if requires_grad else result


def _in_place_view(name):
    view = getattr(Tensor, name)

    def function(self, *args, **kwargs):
        self._become_view(view(self, *args, **kwargs))
        return self

    function.__name__, function.__doc__ = f"{name}_", f"Makes the tensor its own {name}()."
    setattr(Tensor, function.__name__, dispatched(function, function.__name__, method=True))


for _name in ("as_strided", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"):
    _in_place_view(_name)


def _in_place_by_copy(name):
    """name_() of an operator whose table entry has no such form."""
    if f"{name}_" in vars(Tensor) or name not in vars(Tensor):
        return
    functional = getattr(Tensor, name)

    def function(self, *args, **kwargs):
        return self.copy_(functional(self.clone(), *args, **kwargs))

    function.__name__, function.__doc__ = f"{name}_", f"{name}() in place."
    setattr(Tensor, function.__name__, dispatched(function, function.__name__, method=True))


for _name in ("addbmm", "cumprod", "cumsum", "index_reduce", "masked_scatter", "mvlgamma", "polygamma"):
    _in_place_by_copy(_name)


@_method("random_")
def _random(self, from_=None, to=None, *, generator=None, **options):
    """Integers of [from, to), evenly distributed; all that the dtype can hold unless given."""
    from_ = options.pop("from", from_)
    if to is None and from_ is not None:
        from_, to = 0, from_
    if from_ is None:
        from ._types import _FLOATS, _name, iinfo

        bits = _FLOATS[_name(self.dtype)][0] + 1 if self.dtype.is_floating_point else None
        from_, to = 0, 2 if self.dtype is _C.bool else 2**bits + 1 if bits else iinfo(self.dtype).max
    elif from_ >= to:
        raise RuntimeError(f"random_: the range is empty, since 'from' ({from_}) is not below 'to' ({to})")
    return self.copy_(_C.randint(from_, to, self.shape, generator=generator))


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


@_function
def randperm(n, *, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
             requires_grad=False):
    """The numbers 0 to n - 1 in random order."""
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}")
    order = (_C.rand((n,), dtype=_C.float64, generator=generator).argsort() if n
             else _C.empty((0,), dtype=_C.int64))
    return _write(order.to(device, dtype or _C.int64), out)


def _spread(name):
    """var(x, dim, unbiased=True): the flag is a correction of 1 or 0."""
    operator = getattr(_C, name)

    def function(input, *args, unbiased=None, **kwargs):
        """Variance or standard deviation; `correction` (or `unbiased`, for 1) is taken from the number of
        elements.
        """
        if args and isinstance(args[0], bool):
            unbiased, args = args[0], args[1:]
        elif len(args) > 1 and isinstance(args[1], bool):
            unbiased = args[1]
            if len(args) > 2:
                kwargs["keepdim"] = args[2]
            args = args[:1]
        if unbiased is not None:
            kwargs["correction"] = int(unbiased)
        if isinstance(args[0] if args else kwargs.get("dim"), int):
            if args:
                args = ([args[0]], *args[1:])
            else:
                kwargs["dim"] = [kwargs["dim"]]
        if kwargs.get("correction", 1) is not None and not args and "dim" not in kwargs:
            kwargs["dim"] = None
        return operator(input, *args, **kwargs)

    function.__name__ = name
    globals()[name] = _function(function)
    if name in vars(Tensor):
        setattr(Tensor, name, dispatched(function, name, method=True))


for _name in ("var", "std", "var_mean", "std_mean"):
    _spread(_name)


@_function
def randint(*args, low=None, high=None, size=None, generator=None, out=None, dtype=None, **options):
    """Integers of [low, high), evenly distributed; low is 0 unless given."""
    given = list(args)
    size = given.pop() if size is None and given and not isinstance(given[-1], int) else size
    if given:
        low, high = (low or 0, given[0]) if len(given) == 1 else given
    if size is None or high is None:
        raise TypeError(f"randint(): expected low (optional), high and size, got {args}")
    return _write(_C.randint(low or 0, high, size, generator=generator, dtype=dtype or _C.int64, **options),
                  out)


@_function
def randint_like(input, *args, low=None, high=None, **options):
    """randint() of input's size and dtype."""
    low, high = ((low or 0), *args) if len(args) == 1 else args if args else (low or 0, high)
    return _C.randint_like(input, low, high, **options)


@_function
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Elements repeated, each by one count or by a count of its own."""
    if repeats is None:
        counts, source = input, _C.arange(input.size(0))
        dim = 0
    elif isinstance(repeats, int):
        return _C.repeat_interleave(input, repeats, dim)
    else:
        source, counts = (input.reshape(-1), repeats) if dim is None else (input, repeats)
        dim = 0 if dim is None else dim
    if counts.dim() > 1:
        raise RuntimeError("repeat_interleave only accept 0D or 1D vector as repeat")
    if counts.dtype not in (_C.int64, _C.int32):
        raise RuntimeError("repeats has to be Long or Int tensor")
    if counts.numel() == 1 and counts.numel() != source.size(dim):
        counts = counts.reshape(1).expand(source.size(dim))
    elif counts.numel() != source.size(dim):
        raise RuntimeError(f"repeat_interleave: repeats holds {counts.numel()} counts, but dimension {dim} "
                           f"has size {source.size(dim)}: give one count, or one per place")
    places = [k for k, n in enumerate(counts.tolist()) for _ in range(n)]
    if any(n < 0 for n in counts.tolist()):
        raise RuntimeError("repeats can not be negative")
    return source.index_select(dim, _C.tensor(places, dtype=_C.int64))


@_method("repeat_interleave")
def _repeat_interleave_method(self, repeats, dim=None, *, output_size=None):
    return repeat_interleave(self, repeats, dim, output_size=output_size)


@_function
def tensor_split(input, indices_or_sections, dim=0):
    """Parts along a dimension: a number of them, or cut at the indices."""
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    return _C.tensor_split(input, indices_or_sections, dim)


@_method("tensor_split")
def _tensor_split_method(self, indices_or_sections, dim=0):
    return tensor_split(self, indices_or_sections, dim)


@_function
def narrow(input, dim, start, length):
    """The part of a dimension from start on: a view."""
    return _C.narrow(input, dim, _start(start), length)


@_method("narrow")
def _narrow_method(self, dim, start, length):
    return _C.narrow(self, dim, _start(start), length)


def _start(start):
    if not isinstance(start, Tensor):
        return start
    if start.dim() or start.dtype.is_floating_point or start.dtype.is_complex or start.dtype is _C.bool:
        raise RuntimeError("start must be a number or an integral tensor of no dimensions, not "
                           f"{start.dim()} dimensions of {start.dtype}")
    return start.item()


def _between(name):
    """linspace and logspace, whose ends may be tensors of one element."""
    operator = globals().get(name) or getattr(_C, name, None) or getattr(_composites, name)

    def function(start, end, *args, **kwargs):
        ends = [v for v in (start, end) if isinstance(v, Tensor)]
        if any(v.dim() for v in ends):
            raise RuntimeError(f"{name}: start and end must be numbers or 0-dimensional tensors, but they "
                               f"have {getattr(start, 'ndim', 0)} and {getattr(end, 'ndim', 0)} dimensions")
        start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
        return operator(start, end, *args, **kwargs)

    function.__name__, function.__doc__ = name, operator.__doc__
    globals()[name] = _function(function)


for _name in ("linspace", "logspace"):
    _between(_name)


def _copies_into(name):
    """A copy of several views, written into given tensors."""
    operator = getattr(_C, name, None)
    if not isinstance(operator, _C._Operator):
        return

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
    from . import linalg

    return _write(linalg.multi_dot(_tensor_list(matrices)), out)


@_method("backward")
def _backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the gradients of this tensor (times `gradient`) to `.grad` of the leaves, or of `inputs` only."""
    from .autograd import backward

    backward([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs=inputs)
