"""Names of torch._dynamo over flambeau.compile."""
import contextlib
import dataclasses
import functools

from .. import _C
from ..compile_function import compile
from ..compiler import (allow_in_graph, assume_constant_result, disable, is_compiling, reset,
                        substitute_in_graph)
from . import config, exc, utils
from .backends import list_backends, lookup_backend, register_backend
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
    """Ends the graph of the function that is captured; the code after it goes into another one."""
    _C._break()


@dataclasses.dataclass
class ExplainOutput:
    """What became of one function: the graphs, and why they ended."""

    graphs: list
    graph_count: int
    graph_break_count: int
    break_reasons: list
    op_count: int
    text: str

    def __str__(self):
        return self.text


def explain(f, *extra_args, **extra_kwargs):
    """explain(f)(*args): what compiling f for these arguments gives, as an ExplainOutput."""
    def inner(*args, **kwargs):
        compiled = compile(f)
        compiled(*args, **kwargs)
        found = compiled.explain()
        graphs = found["graphs"]
        return ExplainOutput(graphs, len(graphs), max(len(graphs) - 1, 0), found["breaks"],
                             sum(graph["operators"] for graph in graphs), found["text"])

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


def _mark(attribute, t, index):
    if not isinstance(t, _C.Tensor):
        raise TypeError(f"expected a Tensor whose sizes are to be marked, got {type(t).__name__}")
    dims = range(t.dim()) if index is None else index if isinstance(index, (list, tuple)) else [index]
    for d in dims:
        if not isinstance(d, int):
            raise TypeError(f"expected an int or a list of them as dimensions to be marked, got {index!r}")
        if not -t.dim() <= d < t.dim():
            raise IndexError(f"there is no dimension {d} to be marked in a tensor of {t.dim()} dimensions")
    t.__dict__.setdefault(attribute, set()).update(d % t.dim() for d in dims)


def mark_dynamic(t, index, **options):
    """The size of dimension `index` (or of those in a list) is a symbol when t is an input of a graph.
    Options (min, max, ...) have no effect.
    """
    _mark("_dynamo_dynamic_indices", t, index)


maybe_mark_dynamic = mark_unbacked = mark_dynamic


def mark_static(t, index=None):
    """The size of dimension `index`, or all sizes, never become symbols."""
    _mark("_dynamo_static_indices", t, index)


def mark_static_address(t, guard=True):
    """Has no effect: compiled code takes addresses anew at every call."""


def replay(filename):
    raise NotImplementedError("recordings of torch._dynamo can't be replayed")


def export(f, *args, **kwargs):
    raise NotImplementedError("torch._dynamo.export is not supported: flambeau.compile() compiles a function")


def error_on_graph_break(error_on_graph_break=True):
    """A scope that has no effect: compile(fullgraph=True) raises an error for what can't be captured."""
    return contextlib.nullcontext()
