"""Backends of compile() by name, and functions as backends."""
from .. import _C

registered = {}  # name -> function


def register_backend(compiler_fn=None, name=None, tags=()):
    """Makes a function of a GraphModule and example inputs a backend that compile() knows by name: its own,
    if none is given. Also a decorator. Tags have no effect but in list_backends().
    """
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name, tags)
    if not callable(compiler_fn):
        raise TypeError(f"register_backend(): expected a function, got {type(compiler_fn).__name__}")
    registered[name or compiler_fn.__name__] = compiler_fn
    compiler_fn._tags = tuple(tags)
    return compiler_fn


def lookup_backend(compiler_fn):
    """The function of a backend: of its name, or itself."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn in registered:
        return registered[compiler_fn]
    if compiler_fn != "inductor" and compiler_fn not in _C.list_backends():
        from .exc import InvalidBackend

        raise InvalidBackend(f"there is no backend {compiler_fn!r}; there are {', '.join(list_backends(()))}")

    def of_graph(gm, example_inputs):
        from ..compile_function import compile

        return gm.forward if compiler_fn == "eager" else compile(gm, backend=compiler_fn)

    of_graph.__name__ = compiler_fn
    return of_graph


def list_backends(exclude_tags=("debug", "experimental")):
    """Names for compile(backend=...), those left out that are registered with one of the tags."""
    hidden = set(exclude_tags or ())
    shown = (name for name, f in registered.items() if not hidden & set(f._tags))
    return sorted({*_C.list_backends(), *shown})
