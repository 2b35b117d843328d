"""The graph that a capture leaves for a backend that is a Python function."""
import ast
import contextlib
import linecache
import operator
import os
import re

from .. import _C
from .._symbolic import sym_max, sym_min
from ..fx import Graph, GraphModule
from ..fx.code import IN_PLACE, value_text
from ..fx.node import map_aggregate
from ..nn import Module, Parameter
from .exc import BackendCompilerFailed

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
              ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}


class Recorder:
    """Takes the calls of a program one by one, from the capture in C++.

    The program's values stand for nodes: `nodes` has the node of each tensor by its id; tensors that were met
    are kept, so that ids stay theirs.
    """

    def __init__(self):
        self.graph = Graph()
        self.nodes = {}
        self.symbols = {}    # the text of a symbol -> its node
        self.constants = {}  # name -> tensor: values of get_attr nodes
        self.arguments = []  # of a run: (input, None, 0) or (input, "size", d)
        self.numbers = {}    # the text of a symbol -> its number now
        self._kept, self._parts = [], []
        self._renamed = set()
        self._stack = None   # where the program is

    def input(self, value, real, name):
        """What stands for a tensor or number from outside is a placeholder; so is each symbol among a
        tensor's sizes, before it.
        """
        number = sum(1 for _, what, _ in self.arguments if what is None)
        if isinstance(value, _C.Tensor):
            both = ("size", value.shape, real.shape), ("stride", value.stride(), real.stride())
            for what, sizes, numbers in both:
                for d, size in enumerate(sizes):
                    text = _C._sym_text(size)
                    if isinstance(size, _C.SymInt) and text.isidentifier() and text not in self.symbols:
                        self._symbol(text, text, numbers[d])
                        self.arguments.append((number, what, d))
        self.arguments.append((number, None, 0))
        if isinstance(value, _C.Tensor):
            node = self._placeholder(name, Parameter if isinstance(real, Parameter) else _C.Tensor)
            node.meta.update(example_value=self._example(value), value_text=value_text(value))
            self._known(value, node)
        else:
            self._symbol(name, _C._sym_text(value), real)

    def _symbol(self, name, text, number):
        self.symbols[text] = self._placeholder(name, _C.SymInt)
        self.numbers[text] = number
        self.symbols[text].meta["value_text"] = f"Sym({text})"

    def _placeholder(self, name, kind):
        taken = {node.target for node in self.graph.nodes if node.op == "placeholder"}
        while name in taken:  # reached in two ways
            name += "_"
        first = next((node for node in self.graph.nodes if node.op != "placeholder"), None)
        with self.graph.inserting_before(first) if first else contextlib.nullcontext():
            return self.graph.placeholder(name, kind)

    def _example(self, value):
        """What is known of a value, to be used when the capture is over."""
        if isinstance(value, _C.Tensor):
            functions = {"max": max, "min": min}
            return _C._without_elements(value, lambda text: eval(text, functions, self.numbers))
        if isinstance(value, (tuple, list)):
            return tuple(map(self._example, value))
        return None if isinstance(value, _C.SymInt) else value

    def _known(self, tensor, node):
        self.nodes[id(tensor)] = node
        self._kept.append(tensor)

    def call(self, target, args, kwargs, result, stack):
        """A call that gave `result`."""
        self._stack = _with_code(stack)
        args, kwargs = map_aggregate(args, self._argument), map_aggregate(kwargs, self._argument)
        name = getattr(target, "__name__", "")
        if args and getattr(_C.Tensor, name, None) is target:
            node = self.graph.call_method(name, args, kwargs)
        else:
            node = self.graph.call_function(target, args, kwargs)
        node.meta["stack_trace"] = self._stack
        self._result(node, result)

    def _result(self, node, result):
        node.meta["example_value"] = self._example(result)
        if isinstance(result, _C.Tensor):
            node.meta["value_text"] = value_text(result)
            if id(result) not in self.nodes or node.target in IN_PLACE:
                self._known(result, node)
        elif isinstance(result, (tuple, list)):
            for k, item in enumerate(result):
                if isinstance(item, (_C.Tensor, tuple, list)) and not self._has(item):
                    part = self.graph.call_function(operator.getitem, (node, k))
                    self._parts.append(part)
                    part.meta["stack_trace"] = node.meta["stack_trace"]
                    self._result(part, item)

    def _has(self, item):
        if isinstance(item, _C.Tensor):
            return id(item) in self.nodes
        return all(not isinstance(i, (_C.Tensor, tuple, list)) or self._has(i) for i in item)

    def _argument(self, a):
        if isinstance(a, _C.SymInt):
            return self._number(ast.parse(_C._sym_text(a), mode="eval").body)
        if not isinstance(a, _C.Tensor):
            return a
        if id(a) not in self.nodes:
            if not _C._has_elements(a):
                raise NotImplementedError("a tensor that a function in C made is not captured for a backend "
                                          "that is a function")
            name = f"_tensor_constant{len(self.constants)}"
            self.constants[name] = a
            node = self.graph.get_attr(name)
            node.meta["example_value"] = self._example(a)
            self._known(a, node)
        return self.nodes[id(a)]

    def _number(self, e):
        """A node, or an int, for an expression over symbols."""
        text = ast.unparse(e)
        if isinstance(e, ast.Constant):
            return e.value
        if text not in self.symbols:
            if isinstance(e, ast.UnaryOp):
                node = self.graph.call_function(operator.neg, (self._number(e.operand),))
            elif isinstance(e, ast.BinOp):
                operands = self._number(e.left), self._number(e.right)
                node = self.graph.call_function(_OPERATORS[type(e.op)], operands)
            elif isinstance(e, ast.Call) and e.func.id in ("min", "max"):
                function = {"min": sym_min, "max": sym_max}[e.func.id]
                node = self.graph.call_function(function, tuple(map(self._number, e.args)))
            else:
                raise NotImplementedError(f"the number {text} is not captured for a backend that is a "
                                          "function")
            self.symbols[text] = node
            node.meta.update(value_text=f"Sym({text})", stack_trace=self._stack)
        return self.symbols[text]

    def name(self, value, variable):
        """A node gets the name of the first variable that holds it."""
        node = self.nodes.get(id(value))
        if node is None or node.op in ("placeholder", "get_attr") or node in self._renamed:
            return
        self._renamed.add(node)
        if re.fullmatch(r"[A-Za-z_]\w*", variable):
            node._rename(variable)

    def output(self, values):
        self.graph.output(tuple(self._argument(v) for v in values))

    def module(self):
        """The graph as a module."""
        root = Module()
        for part in reversed(self._parts):
            if not part.users:
                self.graph.erase_node(part)
        for name, tensor in self.constants.items():
            root.register_buffer(name, tensor, persistent=False)
        self.text = str(self.graph)
        self.calls = sum(node.op.startswith("call_") for node in self.graph.nodes)
        return GraphModule(root, self.graph)


_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def _with_code(stack):
    """The lines of the program, this package's left out, with what stands there."""
    lines = []
    for line in stack.splitlines():
        file, number = line.split('"')[1], line.split(", line ")[1].split(",")[0]
        if not file.startswith(_PACKAGE):
            lines += [line, f"    {linecache.getline(file, int(number)).strip()}"]
    return "\n".join(lines) + "\n" if lines else None


def compiled(backend, module, inputs):
    """What the backend makes of the graph. Raises BackendCompilerFailed with what it raised."""
    name = getattr(backend, "__name__", repr(backend))
    try:
        made = backend(module, inputs)
    except Exception as error:
        raise BackendCompilerFailed(f"backend={name!r} raised:\n{type(error).__name__}: {error}") from error
    if not callable(made):
        raise BackendCompilerFailed(f"backend={name!r} gave a {type(made).__name__}, which can't be called")
    return made
