"""Names of torch._dynamo over flambeau.compile."""
import contextlib
import functools

from .. import _C, compiler
from ..compile_function import compile
from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, reset, substitute_in_graph
from . import config, exc, utils

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "explain",
           "forbid_in_graph", "graph_break", "is_compiling", "list_backends", "lookup_backend", "mark_dynamic",
           "mark_static", "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "optimize", "optimize_assert",
           "register_backend", "replay", "reset", "run", "substitute_in_graph"]


def __getattr__(name):
    if name == "OptimizedModule":
        from .eval_frame import OptimizedModule

        return OptimizedModule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def optimize(backend="inductor", *, nopython=False, dynamic=None, **options):
    """A decorator that compiles."""
    return lambda fn: compile(fn, backend=backend, fullgraph=nopython, dynamic=dynamic)


optimize_assert = functools.partial(optimize, nopython=True)


def disallow_in_graph(fn):
    return fn


forbid_in_graph = nonstrict_trace = dont_skip_tracing = disallow_in_graph


def graph_break(msg=""):
    """A place where a graph ends; nothing outside of capture."""


def explain(f, *extra_args, **extra_kwargs):
    """explain(f)(*args): what compiling f for these arguments gives."""
    def inner(*args, **kwargs):
        compiled = compile(f)
        compiled(*args, **kwargs)
        return compiled.explain()

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


def mark_dynamic(t, index, *, min=None, max=None, **options):
    """Notes that a size changes from call to call: sizes that change are found without it."""
    dims = index if isinstance(index, (list, tuple)) else (index,)
    t._dynamo_dynamic_indices = getattr(t, "_dynamo_dynamic_indices", set()) | set(dims)


def maybe_mark_dynamic(t, index):
    """Accepted."""


mark_unbacked = maybe_mark_dynamic


def mark_static(t, index=None):
    """Accepted."""


def mark_static_address(t, guard=True):
    """Accepted: on the CPU no program keeps addresses."""


def list_backends(exclude_tags=("debug", "experimental")):
    return compiler.list_backends(exclude_tags)


_backends = {}


def register_backend(compiler_fn=None, name=None, tags=()):
    """A decorator that gives a backend a name."""
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    _backends[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


def lookup_backend(compiler_fn):
    return _backends.get(compiler_fn, compiler_fn) if isinstance(compiler_fn, str) else compiler_fn


def run(fn=None):
    return fn


def replay(filename):
    raise NotImplementedError("recordings of torch._dynamo can't be replayed")


def export(f, *args, **kwargs):
    raise NotImplementedError("torch._dynamo.export is not supported: use flambeau.export")


@contextlib.contextmanager
def error_on_graph_break(error_on_graph_break=True):
    yield
