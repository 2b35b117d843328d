"""Names of torch._dynamo over flambeau.compile."""
import contextlib
import functools

from ..compile_function import compile
from ..compiler import (allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset,
                        substitute_in_graph)
from . import config, exc, utils
from .eval_frame import OptimizedModule

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph",
           "explain", "forbid_in_graph", "graph_break", "is_compiling", "list_backends", "lookup_backend",
           "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace",
           "optimize", "optimize_assert", "register_backend", "replay", "reset", "run", "substitute_in_graph"]


def optimize(backend="inductor", *, nopython=False, dynamic=None, **options):
    """A decorator that compiles; other options have no effect."""
    return lambda fn: compile(fn, backend=backend, fullgraph=nopython, dynamic=dynamic)


optimize_assert = functools.partial(optimize, nopython=True)
disallow_in_graph = forbid_in_graph = nonstrict_trace = dont_skip_tracing = run = allow_in_graph


def graph_break(msg=""):
    """Has no effect: a function is captured as a whole, or runs eagerly as a whole."""


def explain(f, *extra_args, **extra_kwargs):
    """explain(f)(*args): what compiling f for these arguments gives."""
    def inner(*args, **kwargs):
        compiled = compile(f)
        compiled(*args, **kwargs)
        return compiled.explain()

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


def mark_dynamic(t, index=None, **options):
    """Has no effect: compile() finds the sizes that change by itself; see its argument `dynamic`."""


maybe_mark_dynamic = mark_unbacked = mark_static = mark_dynamic


def mark_static_address(t, guard=True):
    """Has no effect: compiled code takes addresses anew at every call."""


def register_backend(compiler_fn=None, name=None, tags=()):
    raise NotImplementedError("torch._dynamo.register_backend is not supported: PyTorch's backends compile "
                              "graphs of torch.fx, which Flambeau does not have; compile() has the backends "
                              f"{', '.join(list_backends())}")


def lookup_backend(compiler_fn):
    raise NotImplementedError("torch._dynamo.lookup_backend is not supported: Flambeau's backends are no "
                              f"functions; compile(backend=...) takes the names {', '.join(list_backends())}")


def replay(filename):
    raise NotImplementedError("recordings of torch._dynamo can't be replayed")


def export(f, *args, **kwargs):
    raise NotImplementedError("torch._dynamo.export is not supported: flambeau.compile() compiles a function")


def error_on_graph_break(error_on_graph_break=True):
    """A scope that has no effect: compile(fullgraph=True) raises an error for what can't be captured."""
    return contextlib.nullcontext()
