"""Functions with a backward of one's own."""
import functools

from .. import _C
from .._C import Tensor

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction",
           "NestedIOFunction", "once_differentiable", "traceable"]


apply_own_forward_rule = None  # forward_ad's, once it is loaded


class FunctionCtx:
    """What forward leaves for backward; users may set attributes of their own."""

    _to_save = _dirty = _non_differentiable = ()
    _materialize_grads = True
    _state = None
    saved_for_forward = ()

    def save_for_backward(self, *tensors):
        """Keeps inputs, outputs, other tensors or None for `saved_tensors`. Call it once, in forward."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward() keeps tensors only, not a {type(t).__name__}: set an "
                                "attribute of ctx")
        self._to_save = tensors

    def save_for_forward(self, *tensors):
        """Keeps tensors that are the `saved_tensors` of jvp."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *inputs):
        """Says that forward changes these inputs in place (and returns them)."""
        self._dirty = inputs

    def mark_non_differentiable(self, *outputs):
        """Says that nothing can be differentiated through these outputs."""
        self._non_differentiable = outputs

    def set_materialize_grads(self, value):
        """False: backward gets None, not zeros, for outputs that nothing depends on."""
        self._materialize_grads = bool(value)

    def mark_shared_storage(self, *pairs):
        """Has no effect: shared storage is found out."""

    @property
    def saved_tensors(self):
        """The tensors that were saved. Raises RuntimeError if one was changed in place since, or released."""
        if self._state is None or not self._state.is_recorded():
            return tuple(self._to_save)
        return self._state.saved()

    @property
    def saved_variables(self):
        return self.saved_tensors

    @property
    def needs_input_grad(self):
        """For each argument of forward: whether its gradient is wanted."""
        return tuple(needed and self._needs(k) for k, needed in enumerate(self._requires_grad))

    @needs_input_grad.setter
    def needs_input_grad(self, value):
        self._requires_grad = tuple(value)
        self._places = {}

    def _needs(self, k):
        if self._state is None or not self._state.is_recorded() or k not in self._places:
            return True
        return self._state.needs_input_grad(self._places[k])

    @property
    def materialize_grads(self):
        return self._materialize_grads

    def name(self):
        return type(self).__name__


class FunctionMeta(type):
    """Gives every Function the class of its nodes' ctx."""

    def __init__(cls, name, bases, namespace):
        super().__init__(name, bases, namespace)
        cls._ctx_class = type(f"{name}Backward", (FunctionCtx,), {"_forward_cls": cls})


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base of functions with static methods forward(ctx, *args) and backward(ctx, *grads), called by apply().

    With a static method setup_context(ctx, inputs, output), forward takes no ctx.
    """

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        raise RuntimeError(f"{type(self)} is never instantiated: its methods are static, and its class is "
                           "what you call, with apply()")

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("an autograd.Function needs a static method forward.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("this autograd.Function has no static method backward (or vjp), so no "
                                  "gradient can flow through it.")

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError("this autograd.Function has no static method jvp, which forward mode "
                                  "needs.")

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError("this autograd.Function has no static method vmap; torch.vmap() does not "
                                  "need it, it applies the Function to each slice.")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Runs forward, and records the call if an argument requires grad."""
        if apply_own_forward_rule and cls.jvp is not Function.jvp:
            result = apply_own_forward_rule(cls, args, kwargs)
            if result is not NotImplemented:
                return result
        return cls._apply(cls._ctx_class(), args, kwargs)

    @classmethod
    def _apply(cls, ctx, args, kwargs):
        separate = cls.setup_context is not Function.setup_context
        if separate and kwargs:
            args, kwargs = _bind_defaults(cls.forward, args, kwargs), {}
        tensors, places = [], {}
        for k, a in enumerate(args):
            if isinstance(a, Tensor):
                places[k] = len(tensors)
                tensors.append(a)
        ctx._requires_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        ctx._places = places
        result = _Result()

        def forward():
            if separate:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
            return result.take(output)

        # Backward must hold neither arguments nor outputs.
        shape, count = result.shape, len(args)

        def backward(ctx, grads):
            gradients = cls._backward(ctx)(ctx, *shape.spread(grads))
            return _gradients_of_tensors(cls, gradients, count, places)

        ctx._run_backward = backward
        once = getattr(cls._backward(ctx), "_once_differentiable", False)
        outputs = _C._apply_function(cls.__name__, ctx, forward, tensors, once)
        return result.give(outputs)

    @classmethod
    def _backward(cls, ctx):
        vjp = getattr(cls, "vjp", None)
        return vjp if vjp is not None and cls.backward is Function.backward else cls.backward


def _bind_defaults(forward, args, kwargs):
    import inspect

    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


class _Shape:
    """Which outputs of a forward are tensors."""

    def spread(self, grads):
        """One gradient for each output, None for those that are no tensors."""
        it = iter(grads)
        return [next(it) if is_tensor else None for is_tensor in self.tensors]


class _Result:
    """The output of a forward on its way through the library, which sees its tensors only."""

    def __init__(self):
        self.shape = _Shape()

    def take(self, output):
        self.single = not isinstance(output, (tuple, list))
        self.items = [output] if self.single else list(output)
        self.kind = type(output)
        self.shape.tensors = [isinstance(o, Tensor) for o in self.items]
        if self.single and not isinstance(output, Tensor):
            raise TypeError(f"a Function's forward must return Tensors, got {type(output).__name__}")
        return [o for o in self.items if isinstance(o, Tensor)]

    def give(self, outputs):
        it = iter(outputs)
        items = [next(it) if is_tensor else o for o, is_tensor in zip(self.items, self.shape.tensors)]
        return items[0] if self.single else tuple(items)


def _gradients_of_tensors(cls, gradients, count, places):
    if not isinstance(gradients, (tuple, list)):
        gradients = (gradients,)
    given = list(gradients)
    while len(given) > count and given[-1] is None:
        given.pop()
    if len(given) != count:
        raise RuntimeError(f"{cls.__name__}.backward returned an incorrect number of gradients: {len(given)} "
                           f"for {count} inputs")
    for k, g in enumerate(given):
        if g is not None and k not in places:
            raise RuntimeError(f"{cls.__name__}.backward returned a gradient for input number {k + 1}, which "
                               "is not a Tensor: return None there")
        if g is not None and not isinstance(g, Tensor):
            raise TypeError(f"expected Variable or None (got {type(g).__name__})")
    return [given[k] for k in places]


def once_differentiable(function):
    """Decorator of a backward that must not be differentiated itself."""

    @functools.wraps(function)
    def wrapped(ctx, *args):
        return function(ctx, *args)

    wrapped._once_differentiable = True
    return wrapped


def traceable(function_class):
    function_class.is_traceable = True
    return function_class


class InplaceFunction(Function):
    """A Function with a flag `inplace`."""

    def __init__(self, inplace=False):
        self.inplace = inplace


NestedIOFunction = Function
BackwardCFunction = FunctionCtx
