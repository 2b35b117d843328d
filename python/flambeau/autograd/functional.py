"""Jacobians, Hessians and their products with vectors, of functions of tensors."""
from .. import _C
from .._C import Tensor
from .forward_ad import jacobian_by_columns, push_forward

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


class _Call:
    """One call of a function on copies of its inputs that require grad."""

    def __init__(self, func, inputs, name, create_graph):
        self.name = name
        self.one_input = isinstance(inputs, Tensor)
        given = (inputs,) if self.one_input else tuple(inputs)
        for k, x in enumerate(given):
            if not isinstance(x, Tensor):
                raise TypeError(f"{name}: inputs must be one Tensor or a tuple of them, but element {k} is "
                                f"of type {type(x)}.")
        if create_graph:
            self.inputs = tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_()
                                for x in given)
        else:
            self.inputs = tuple(x.detach().requires_grad_() for x in given)
        output = func(*self.inputs)
        self.one_output = isinstance(output, Tensor)
        self.outputs = (output,) if self.one_output else tuple(output)
        for k, y in enumerate(self.outputs):
            if not isinstance(y, Tensor):
                raise TypeError(f"{name}: the function must return one Tensor or a tuple of them, but "
                                f"element {k} of its result is of type {type(y)}.")

    def vector(self, v, like, what):
        """v as tensors of the sizes of `like`; 1 for a single element if v is None."""
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise RuntimeError(f"v may be None only where the function's {what} is a single Tensor of "
                                   "one element.")
            return tuple(_C.ones_like(x) for x in like)
        v = (v,) if isinstance(v, Tensor) else tuple(v)
        if len(v) != len(like):
            raise RuntimeError(f"The {what} is a tuple of {len(like)} Tensors but v has {len(v)}.")
        for k, (a, b) in enumerate(zip(v, like)):
            if a.size() != b.size():
                raise RuntimeError(f"v has invalid size: {tuple(a.size())} at index {k}, expected "
                                   f"{tuple(b.size())}.")
        return v

    def grad(self, outputs, inputs, vectors, create_graph, strict, what):
        """The gradients, with zeros where there is no dependence (an error if strict)."""
        live = [(y, v) for y, v in zip(outputs, vectors) if y.requires_grad]
        if live:
            grads = _C._grad([y for y, _ in live], list(inputs), [v for _, v in live], True,
                             create_graph, True)
        else:
            grads = (None,) * len(inputs)
        if strict and any(g is None for g in grads):
            raise RuntimeError(f"strict=True: the function's {what} does not depend on some input.")
        return tuple(_C.zeros_like(x) if g is None else g for x, g in zip(inputs, grads))

    @staticmethod
    def finish(values, single, create_graph):
        values = tuple(values) if create_graph else tuple(v.detach() for v in values)
        return values[0] if single else values


def _enable_grad(function):
    from .grad_mode import enable_grad

    return enable_grad()(function)


@_enable_grad
def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, v^T J): the product of a vector with the Jacobian of func at inputs."""
    call = _Call(func, inputs, "vjp", create_graph)
    v = call.vector(v, call.outputs, "output")
    grads = call.grad(call.outputs, call.inputs, v, create_graph, strict, "output")
    return (call.finish(call.outputs, call.one_output, create_graph),
            call.finish(grads, call.one_input, create_graph))


@_enable_grad
def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, J v): the derivative of func along v."""
    call = _Call(func, inputs, "jvp", create_graph)
    v = call.vector(v, call.inputs, "input")
    found = push_forward(call.outputs, call.inputs, v, create_graph)
    if strict and any(d is None for d in found):
        raise RuntimeError("strict=True: the function's output does not depend on some input.")
    result = [_C.zeros_like(y) if d is None else d for y, d in zip(call.outputs, found)]
    return (call.finish(call.outputs, call.one_output, create_graph),
            call.finish(result, call.one_output, create_graph))


def _rows(call, output, create_graph, strict):
    """The gradient of every element of an output, stacked: one Jacobian for each input."""
    rows = []
    for k in range(output.numel()):
        seed = _C.zeros_like(output)
        seed.view(-1)[k] = 1
        rows.append(call.grad((output,), call.inputs, (seed,), create_graph, strict, "output"))
    if not rows:
        return tuple(x.new_zeros((*output.shape, *x.shape)) for x in call.inputs)
    return tuple(_C.stack([r[i] for r in rows]).view(*output.shape, *x.shape)
                 for i, x in enumerate(call.inputs))


@_enable_grad
def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian: a tensor [*output, *input], or tuples of them, outputs first.

    strategy: "reverse-mode", a pass for each output element, or "forward-mode", one for each input element.
    vectorize has no effect.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(f"expected strategy to be 'forward-mode' or 'reverse-mode', got {strategy!r}")
    if strict and strategy == "forward-mode":
        raise RuntimeError("jacobian(): strict=True goes with strategy='reverse-mode' only")
    call = _Call(func, inputs, "jacobian", create_graph)
    if strategy == "forward-mode":
        blocks = jacobian_by_columns(call.outputs, call.inputs, create_graph)
    else:
        blocks = [_rows(call, y, create_graph, strict) for y in call.outputs]
    blocks = [call.finish(b, call.one_input, create_graph) for b in blocks]
    return blocks[0] if call.one_output else tuple(blocks)


def _single_value(func):
    def checked(*inputs):
        out = func(*inputs)
        if not isinstance(out, Tensor):
            raise TypeError("The output of the user-provided function must be a Tensor")
        if out.numel() != 1:
            raise RuntimeError("The Tensor returned by the function should contain a single element")
        return out.reshape(())

    return checked


@_enable_grad
def hessian(func, inputs, create_graph=False, strict=False, vectorize=False,
            outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a function of one value: a tensor [*input, *input], or a tuple of tuples."""
    one = isinstance(inputs, Tensor)
    single = _single_value(func)

    def gradient(*xs):
        grads = jacobian(single, xs, create_graph=True, strict=strict)
        return grads[0] if one else grads

    return jacobian(gradient, inputs, create_graph=create_graph, strict=strict,
                    strategy=outer_jacobian_strategy)


@_enable_grad
def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, v^T H) of a function of one value."""
    call = _Call(_single_value(func), inputs, "vhp", create_graph)
    v = call.vector(v, call.inputs, "input")
    ones = (_C.ones_like(call.outputs[0]),)
    gradient = call.grad(call.outputs, call.inputs, ones, True, strict, "output")
    result = call.grad(gradient, call.inputs, v, create_graph, strict, "jacobian")
    return call.finish(call.outputs, True, create_graph), call.finish(result, call.one_input, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, H v) of a function of one value; vhp gives the same, as H is symmetric, at less cost."""
    return vhp(func, inputs, v, create_graph, strict)
