"""Derivatives as functions. They nest in each other and in backward(): a derivative keeps the history of what
it depends on beside the arguments that it was taken by.
"""
import functools

from .. import _C
from .._C import Tensor
from ..autograd.forward_ad import Level, jacobian_by_columns
from ..autograd.grad_mode import enable_grad
from ..utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


def _fresh(x):
    """A tensor to differentiate by: with the history of x, or a new leaf."""
    if not isinstance(x, Tensor):
        raise ValueError(f"expected tensors to differentiate by, got {type(x).__name__}")
    return x.view_as(x) if x.requires_grad else x.detach().requires_grad_()


def _history_beside(outputs, own):
    """Whether outputs depend on something that requires grad besides the leaves in `own`."""
    own = {id(x) for x in own}
    seen, stack = set(), []
    for y in outputs:
        if y.requires_grad:
            if y.grad_fn is None and id(y) not in own:
                return True
            stack.append(y.grad_fn)
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None) if node.name().endswith("AccumulateGrad") else None
        if leaf is not None and id(leaf) not in own:
            return True
        stack.extend(n for n, _ in node.next_functions)
    return False


class _Call:
    """One call of a function on fresh tensors, and gradients of its outputs."""

    def __init__(self, func, args, inputs, has_aux):
        """inputs: the leaves among the arguments to differentiate by, each a _fresh() one."""
        self.inputs, self.aux = inputs, None
        result = func(*args)
        if has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError("has_aux=True: the function must return a pair (output, aux), got "
                                   f"{type(result).__name__}")
            result, self.aux = result
        self.outputs, self.structure = tree_flatten(result)
        for y in self.outputs:
            if not isinstance(y, Tensor):
                raise ValueError(f"expected the function to return tensors, got {type(y).__name__}")
        leaves = [x for x in inputs if x.grad_fn is None]
        self.keeps_history = _history_beside(self.outputs, leaves)

    def gradients(self, outputs, seeds, create_graph=None):
        """Of sum(outputs * seeds) by the inputs; zeros where there is no dependence."""
        create_graph = self.keeps_history if create_graph is None else create_graph
        live = [(y, s) for y, s in zip(outputs, seeds) if y.requires_grad]
        if not live:
            return [_C.zeros_like(x) for x in self.inputs]
        found = _C._grad([y for y, _ in live], self.inputs, [s for _, s in live], True, create_graph, True)
        return [_C.zeros_like(x) if g is None else g for x, g in zip(self.inputs, found)]

    def finished(self, tree):
        """What the caller gets of a tree of tensors."""
        return tree if self.keeps_history else tree_map(
            lambda t: t.detach() if isinstance(t, Tensor) else t, tree)

    def value(self):
        return self.finished(tree_unflatten(self.outputs, self.structure))


def _chosen(args, argnums, name):
    """The arguments with fresh tensors at argnums: (args, those tensors, their structure)."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not numbers:
        raise RuntimeError(f"{name}(): argnums is empty: name an argument to differentiate by")
    args = list(args)
    for n in numbers:
        if not isinstance(n, int) or not -len(args) <= n < len(args):
            raise RuntimeError(f"{name}(): got argnum={n}, but only {len(args)} positional arguments")
        args[n] = tree_map(_fresh, args[n])
    picked = args[numbers[0]] if isinstance(argnums, int) else tuple(args[n] for n in numbers)
    leaves, structure = tree_flatten(picked)
    return args, leaves, structure


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that returns the gradient of func, whose result is one number, and func's value.

    argnums: the argument, or several, to differentiate by; the gradient has its form. has_aux: func returns
    (output, aux), and the second result is (value, aux).
    """
    @functools.wraps(func)
    def both(*args, **kwargs):
        with enable_grad():
            args, leaves, structure = _chosen(args, argnums, "grad")
            call = _Call(lambda *a: func(*a, **kwargs), args, leaves, has_aux)
            if len(call.outputs) != 1 or call.outputs[0].dim() != 0:
                shapes = ", ".join(str(tuple(y.shape)) for y in call.outputs)
                raise RuntimeError("grad(): expected the function to return a tensor of no dimensions, got "
                                   f"{shapes or 'nothing'}")
            gradient = call.gradients(call.outputs, [_C.ones_like(call.outputs[0])])
            gradient = tree_unflatten(gradient, structure)
            value = call.value()
            return gradient, ((value, call.finished(call.aux)) if has_aux else value)

    return both


def grad(func, argnums=0, has_aux=False):
    """A function that returns the gradient of func, or (gradient, aux): as grad_and_value()."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args, **kwargs):
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def vjp(func, *primals, has_aux=False):
    """(output, vjp_fn[, aux]): vjp_fn(cotangents) is a tuple, the gradient by each of the primals."""
    with enable_grad():
        args, leaves, structure = _chosen(primals, range(len(primals)), "vjp")
        call = _Call(func, args, leaves, has_aux)
        value = call.value()

    def vjp_fn(*cotangents, retain_graph=True, create_graph=None):
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        seeds, form = tree_flatten(given)
        if form != call.structure:
            raise RuntimeError(f"vjp(): expected cotangents of the output's form {call.structure}, got "
                               f"{form}")
        for seed, y in zip(seeds, call.outputs):
            if seed.shape != y.shape:
                raise RuntimeError(f"vjp(): expected a cotangent of shape {tuple(y.shape)}, got "
                                   f"{tuple(seed.shape)}")
        keeps = call.keeps_history or any(s.requires_grad for s in seeds)
        with enable_grad():
            found = call.gradients(call.outputs, seeds, keeps)
        return tree_unflatten(found, structure)

    return (value, vjp_fn, call.finished(call.aux)) if has_aux else (value, vjp_fn)


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(output, derivative along the tangents[, aux]), by forward mode (autograd.forward_ad).

    primals and tangents: tuples of the same form.
    """
    if not isinstance(primals, tuple) or not primals:
        raise RuntimeError(f"jvp(): expected primals as a tuple of one or more, got {type(primals).__name__}")
    along, form = tree_flatten(tangents)
    if form != tree_flatten(primals)[1]:
        raise RuntimeError("jvp(): primals and tangents must have the same form")
    with Level() as level:
        args, leaves, _ = _chosen(primals, range(len(primals)), "jvp")
        for leaf, tangent in zip(leaves, along):
            level.add(leaf, tangent)
        call = _Call(func, args, leaves, has_aux)
        call.keeps_history = level.has_other_history(call.outputs)
        keeps = call.keeps_history or any(t.requires_grad for t in along)
        found = level.tangents_of(call.outputs, keeps)
        if strict and any(d is None for d in found):
            raise RuntimeError("jvp(strict=True): an output does not depend on the primals")
        found = [_C.zeros_like(y) if d is None else d if keeps else d.detach()
                 for y, d in zip(call.outputs, found)]
        derivative = tree_unflatten(found, call.structure)
    return (call.value(), derivative, call.finished(call.aux)) if has_aux else (call.value(), derivative)


def linearize(func, *primals):
    """(output, jvp_fn): jvp_fn(*tangents) is the derivative of func at the primals along them."""
    output = func(*primals)
    return output, lambda *tangents: jvp(func, primals, tangents)[1]


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that returns the Jacobian of func: for each output, in its form, for each argument of
    argnums, in its form, a tensor [*output, *argument]. chunk_size has no effect: a row is a backward pass.
    """
    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        with enable_grad():
            args, leaves, structure = _chosen(args, argnums, "jacrev")
            call = _Call(lambda *a: func(*a, **kwargs), args, leaves, has_aux)
            blocks = [tree_unflatten(_rows(call, y), structure) for y in call.outputs]
            result = tree_unflatten(blocks, call.structure)
            return (result, call.finished(call.aux)) if has_aux else result

    return jacobian


def _rows(call, output):
    """For each input the gradients of an output's elements, [*output, *input]."""
    rows = []
    for k in range(output.numel()):
        seed = _C.zeros_like(output).reshape(-1)
        seed[k] = 1
        rows.append(call.gradients([output], [seed.view(output.shape)]))
    if not rows:
        return [x.new_zeros((*output.shape, *x.shape)) for x in call.inputs]
    return [_C.stack([row[i] for row in rows]).view(*output.shape, *x.shape)
            for i, x in enumerate(call.inputs)]


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """As jacrev(), column by column: for functions of few numbers."""
    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        with enable_grad():
            args, leaves, structure = _chosen(args, argnums, "jacfwd")
            call = _Call(lambda *a: func(*a, **kwargs), args, leaves, has_aux)
            blocks = jacobian_by_columns(call.outputs, leaves, call.keeps_history)
            result = tree_unflatten([tree_unflatten(block, structure) for block in blocks], call.structure)
            result = call.finished(result)
            return (result, call.finished(call.aux)) if has_aux else result

    return jacobian


def hessian(func, argnums=0):
    """A function that returns the Hessian of func: the Jacobian of the Jacobian."""
    return jacfwd(jacrev(func, argnums), argnums)
