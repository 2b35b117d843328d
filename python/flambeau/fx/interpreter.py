"""Interpreter: a graph run node by node."""
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg
from .proxy import Proxy, Tracer


class Interpreter:
    """Runs the graph of a module one node after the other. Programs derive from it and say in call_function()
    and so on what a node does.
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module = module
        self.graph = graph if graph is not None else module.graph
        self.submodules = dict(module.named_modules())
        self.garbage_collect_values = garbage_collect_values
        self.env = {}

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """What the graph returns for these arguments."""
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        left = {node: len(node.users) for node in self.graph.nodes}
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            for used in node.all_input_nodes if self.garbage_collect_values else ():
                left[used] -= 1
                if not left[used]:
                    del self.env[used]
        return None

    def boxed_run(self, args_list):
        """The same with the arguments in a list, which this empties."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n):
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n):
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """Arguments with values in the place of nodes."""
        def value(node):
            if node not in self.env:
                raise RuntimeError(f"{n} reads {node}, which has no value: it comes later or is not in the "
                                   "graph")
            return self.env[node]

        return map_arg(args, value)

    def fetch_attr(self, target):
        """What a path of the module means."""
        value = self.module
        for part in target.split("."):
            value = getattr(value, part)
        return value

    def placeholder(self, target, args, kwargs):
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"the graph needs an argument {target!r}, which is not given") from None

    def get_attr(self, target, args, kwargs):
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target, args, kwargs):
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        return args[0]


class Transformer(Interpreter):
    """An Interpreter whose nodes make nodes of a new graph: transform() gives a module with it."""

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = Tracer()
        self.tracer.graph, self.tracer.root = self.new_graph, module

    def placeholder(self, target, args, kwargs):
        return Proxy(self.new_graph.placeholder(target, default_value=args[0] if args else ...), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self):
        """The module of the new graph."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph)

    def run_node(self, n):
        made = super().run_node(n)
        if isinstance(made, Proxy) and isinstance(made.node, Node):
            made.node.meta.update(n.meta)
        return made
