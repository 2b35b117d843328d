"""Operators of one's own, in Python: torch.ops.namespace.name, with kernels, shapes and gradients."""
import functools
import inspect

from . import _C, _ops
from .autograd import Function

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl",
           "impl_abstract", "infer_schema", "opcheck", "register_autocast", "register_autograd",
           "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap", "wrap_triton",
           "triton_op"]

fallthrough_kernel = object()


def _operator(name):
    return _ops.find(name if isinstance(name, str) else name._qualname)


def define(qualname, schema, *, lib=None, tags=()):
    """Makes the operator torch.ops.namespace.name; schema: "(Tensor x, int n=2) -> Tensor"."""
    _ops.define(qualname, schema)


def impl(qualname, types="default", func=None, *, lib=None):
    """Its function: a decorator, or with func at once. types: "CPU", "default", ..."""
    if func is None:
        return lambda f: (impl(qualname, types, f), f)[1]
    _operator(qualname).function = func


def register_kernel(op, device_types, func=None, /, *, lib=None):
    return impl(op, device_types or "default", func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """Its function for tensors without elements."""
    if func is None:
        return lambda f: (register_fake(op, f), f)[1]
    found = _ops.find(op if isinstance(op, str) else op._qualname, missing_ok=True)
    if found is not None:
        found.fake = func


impl_abstract = register_fake


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Its gradient: backward(ctx, *grads), setup_context(ctx, inputs, output)."""
    found = _operator(op)
    found.backward, found.setup_context = backward, setup_context


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Has no effect: autocast leaves operators of one's own alone. Cast in the operator's function."""


def register_vmap(op, func=None, /, *, lib=None):
    """func itself. Has no effect: vmap() calls the operator for each slice."""
    return func if func is not None else (lambda f: f)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """func itself. Has no effect: no class is asked below the operators (utils._python_dispatch)."""
    return func if func is not None else (lambda f: f)


class Library:
    """A namespace of operators: define() and impl(). Functions for other devices than the CPU, and for
    operators of Flambeau's own table, have no effect.
    """

    def __init__(self, ns, kind, dispatch_key=""):
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema, alias_analysis="", *, tags=()):
        name = schema.split("(")[0].strip()
        _ops.define(f"{self.ns}::{name}", schema[schema.index("("):])
        return name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        name = op_name if isinstance(op_name, str) else op_name._qualname
        name = name if "::" in name else f"{self.ns}::{name}"
        operator, dispatch_key = _ops.find(name, missing_ok=True), dispatch_key or self.dispatch_key
        if operator is None or fn is fallthrough_kernel:
            return
        if dispatch_key == "Meta":
            operator.fake = fn
        elif dispatch_key in ("", "CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd"):
            operator.function = fn

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """Has no effect: operators do not pass through keys."""

    def _destroy(self):
        """Has no effect: operators stay."""


_TYPES = {_C.Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str",
          _C.dtype: "ScalarType", _C.device: "Device"}


def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """The schema of a function by its annotations."""
    def text(kind):
        if kind in _TYPES:
            return _TYPES[kind]
        arguments = [a for a in getattr(kind, "__args__", ()) if a is not type(None)]
        if len(arguments) == 1 and type(None) in kind.__args__:
            return text(arguments[0]) + "?"
        if (arguments and getattr(kind, "__origin__", None) in (list, tuple)
                or str(kind).startswith("typing.Sequence")):
            return text(arguments[0]) + "[]"
        raise ValueError(f"infer_schema(): the type {kind} is not one of "
                         f"{', '.join(t.__name__ for t in _TYPES)}, or an optional or a list of them")

    signature, parts = inspect.signature(prototype_function, eval_str=True), []
    for name, p in signature.parameters.items():
        kind = text(p.annotation)
        if name in mutates_args:
            kind += f"(a{len(parts)}!)"
        parts.append(f"{kind} {name}" + ("" if p.default is p.empty else f"={p.default}"))
    returns = signature.return_annotation
    if returns in (None, signature.empty):
        result = "()"
    elif returns in _TYPES or not getattr(returns, "__args__", None) or returns.__origin__ is list:
        result = text(returns)
    else:
        result = f"({', '.join(map(text, returns.__args__))})"
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


class CustomOpDef:
    """What custom_op() makes: a function, with register_fake, register_autograd, register_kernel."""

    def __init__(self, qualname, function, schema):
        self._qualname, self._schema = qualname, schema
        functools.update_wrapper(self, function)
        _ops.define(qualname, schema)
        impl(qualname, func=function)

    def __call__(self, *args, **kwargs):
        return _operator(self)(*args, **kwargs)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def register_fake(self, fn):
        return register_fake(self, fn) or fn

    def register_autograd(self, backward, /, *, setup_context=None):
        register_autograd(self, backward, setup_context=setup_context)

    def register_kernel(self, device_types, fn=None, /):
        if fn is None:
            return lambda f: self.register_kernel(device_types, f)
        if device_types in (None, "cpu", "default") or "cpu" in device_types:
            impl(self, func=fn)
        return fn

    def register_vmap(self, func=None):
        return register_vmap(self, func)

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        return register_torch_dispatch(self, torch_dispatch_class, fn)


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """A decorator that makes a function the operator torch.ops.namespace.name."""
    def make(function):
        return CustomOpDef(name, function, schema or infer_schema(function, mutates_args=mutates_args))

    return make if fn is None else make(fn)


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    raise NotImplementedError("Triton's kernels are not supported: Flambeau compiles operators itself")


def wrap_triton(triton_kernel, /):
    raise NotImplementedError("Triton's kernels are not supported: Flambeau compiles operators itself")


def get_ctx():
    raise NotImplementedError("sizes that depend on elements can't be made in a fake function")


def opcheck(op, args, kwargs=None, **options):
    """Runs the operator, and its fake function if there is one, and compares shapes, and nothing else."""
    result = op(*args, **(kwargs or {}))
    operator = _operator(op._qualname)
    if operator.fake is None or not isinstance(result, _C.Tensor):
        return {}
    shape = operator.fake(*args, **(kwargs or {})).shape
    if tuple(shape) != tuple(result.shape):
        raise AssertionError(f"the fake function gives shape {tuple(shape)}, the operator "
                             f"{tuple(result.shape)}")
    return {"test_faketensor": "SUCCESS"}


class _Differentiable(Function):
    """A call of an operator that has a gradient."""

    @staticmethod
    def forward(ctx, operator, *args):
        output = operator.function(*args)
        ctx.operator, ctx.count = operator, len(args)
        if operator.setup_context is not None:
            operator.setup_context(ctx, args, output)
        return output

    @staticmethod
    def backward(ctx, *grads):
        gradients = ctx.operator.backward(ctx, *grads)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        return (None, *gradients, *(None,) * (ctx.count - len(gradients)))
