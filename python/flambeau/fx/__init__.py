"""Programs as graphs of Python objects, to be read and changed: what a backend of compile() that is a
function gets, and what symbolic_trace() makes.
"""
from . import graph, graph_module, interpreter, node, proxy
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, map_arg
from .proxy import Proxy, Tracer, symbolic_trace, wrap
from .subgraph_rewriter import replace_pattern

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "map_arg",
           "replace_pattern", "symbolic_trace", "wrap"]
