"""Context managers that are decorators, too: of functions, generators and classes."""
from ..autograd.grad_mode import _is_generator, _Scope, _wrap_generator

__all__ = ["context_decorator"]


class _DecoratorContextManager(_Scope):
    """A base for context managers: __enter__ and __exit__ are the subclass's, which is then a decorator as
    well. clone() gives the scope of each call; it is there for classes whose __init__ takes arguments.
    """

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, kind, error, trace):
        raise NotImplementedError

    def clone(self):
        return type(self)()

    def _again(self):
        return self.clone()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without arguments: a decorator with and without parentheses."""

    def __new__(cls, orig_func=None):
        scope = super().__new__(cls)
        return scope if orig_func is None else scope(orig_func)


def context_decorator(ctx, func):
    """The function in a context: a context manager, or a function that makes one for each call."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise ValueError(f"context_decorator(): {ctx!r} is a context manager and can be called, too: give "
                         "one or the other")
    scope = _Made(ctx if callable(ctx) else lambda: ctx)
    if isinstance(func, type):
        raise RuntimeError(f"context_decorator(): cannot decorate the class {func.__name__}: decorate its "
                           "methods")
    return _wrap_generator(scope._again, func) if _is_generator(func) else scope(func)


class _Made(_Scope):
    def __init__(self, make):
        self._again = make
