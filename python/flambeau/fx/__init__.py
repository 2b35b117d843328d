"""Programs as graphs in Python, as far as libraries name them. Flambeau's own graphs are made by compile();
tracing a module symbolically in Python is not supported."""
from . import graph_module, node, proxy
from .graph_module import GraphModule
from .node import Node, map_arg
from .proxy import Proxy

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "map_arg",
           "replace_pattern", "symbolic_trace", "wrap"]


def wrap(fn_or_name):
    """fn_or_name itself. Has no effect: there is no trace in which it could be one operation."""
    return fn_or_name


def _refuse(what):
    raise NotImplementedError(f"torch.fx.{what} is not supported: Flambeau does not trace modules "
                              "symbolically in Python; flambeau.compile() compiles a function")


def symbolic_trace(root, concrete_args=None):
    _refuse("symbolic_trace")


def replace_pattern(gm, pattern, replacement):
    _refuse("replace_pattern")


class Tracer:
    """A class that programs derive from; trace() raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        pass

    def trace(self, root, concrete_args=None):
        _refuse("Tracer.trace")

    def is_leaf_module(self, m, module_qualified_name):
        return type(m).__module__.split(".")[0] == __name__.split(".")[0]


class Graph:
    def __init__(self, *args, **kwargs):
        _refuse("Graph")


class Interpreter:
    def __init__(self, *args, **kwargs):
        _refuse("Interpreter")


class Transformer(Interpreter):
    pass
