"""Graph: a program as a list of nodes."""
import builtins
import contextlib
import keyword
import re

from .code import python_code
from .node import Node, map_arg, target_text

_RESERVED = {*keyword.kwlist, *dir(builtins), "torch", "device", "inf", "nan", "math", "NoneType", "operator",
             "self"}


class _Names:
    """The names of a graph's nodes, each given once."""

    def __init__(self):
        self.used, self.next = {}, {}

    def free(self, wanted, owner):
        """A name that is not taken, near the wanted one: max_1, add_2."""
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", wanted) or "_"
        if name[0].isdigit():
            name = "_" + name
        base, number = name, None
        if match := re.fullmatch(r"(.*)_(\d+)", name):
            base, number = match[1], int(match[2])
        candidate = name
        while candidate in _RESERVED or candidate in self.used:
            number = self.next.get(base, 1) if number is None or candidate != name else number + 1
            candidate = f"{base}_{number}"
            self.next[base] = number + 1
        self.used[candidate] = owner
        return candidate


def _snake_case(text):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()


class _NodeList:
    """The nodes of a graph in order; they may be changed while a loop goes over them."""

    def __init__(self, graph, backward=False):
        self.graph, self.backward = graph, backward

    def __len__(self):
        return self.graph._length

    def __iter__(self):
        node = self.graph._root
        while True:
            node = node._prev if self.backward else node._next
            if node is self.graph._root:
                return
            if not node._erased:
                yield node

    def __reversed__(self):
        return _NodeList(self.graph, not self.backward)


class Graph:
    """Nodes in the order in which they run.

    New nodes come to the end, or to where inserting_before() or inserting_after() say. Nothing runs while a
    graph is made or changed: GraphModule turns it into code.
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "placeholder", "", (), {})
        self._root._erased = True
        self._length = 0
        self._names = _Names()
        self._insert = self._root.prepend
        self._tracer_cls = tracer_cls
        self.owning_module = owning_module
        self.meta = {}

    @property
    def nodes(self):
        return _NodeList(self)

    def find_nodes(self, *, op, target=None, sort=True):
        """The nodes of a kind, and of a target where that matters."""
        return [n for n in self.nodes if n.op == op and (op not in _CALLS or n.target == target)]

    def output_node(self):
        """The node that says what the graph returns."""
        return next(n for n in reversed(self.nodes) if n.op == "output")

    # --- making nodes ---

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """A node at the place where new ones go."""
        args, kwargs = args or (), kwargs or {}
        if name is None:
            name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
            name = _snake_case(name.rsplit(".", 1)[-1] if op == "call_function" else name)
            if name.startswith("__") and name.endswith("__"):
                name = name[2:-2]
        node = Node(self, "", op, target, args, kwargs, type_expr)
        for used in node.all_input_nodes:
            if used.graph is not self:
                raise RuntimeError(f"{used}, an argument of a new {op}, is a node of another graph")
        node.name = self._names.free(name, node)
        self._insert(node)
        self._length += 1
        return node

    def placeholder(self, name, type_expr=None, default_value=...):
        """An argument of the program."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """An attribute of the module that owns the graph, by its path."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """args[0].method_name(*args[1:], **kwargs)"""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """A call of a submodule of the module that owns the graph, by its path."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result, type_expr=None):
        """What the program returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda x: x):
        """A copy of a node of another graph. arg_transform(node) gives what its arguments become."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copies of all nodes of g but its output, which this gives as an argument of the copies. val_map
        gets the copy of each node.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], val_map.__getitem__)
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    # --- places ---

    def inserting_before(self, n=None):
        """New nodes go in front of n (of all nodes): at once, and until the end of `with`."""
        return self._insert_at(n.prepend if n is not None else self._root._next.prepend, n)

    def inserting_after(self, n=None):
        """New nodes go behind n (in front of all nodes), each behind the one before: at once, and until the
        end of `with`.
        """
        return self._insert_at((n if n is not None else self._root)._next.prepend, n)

    def _insert_at(self, insert, n):
        if n is not None and n.graph is not self:
            raise ValueError(f"{n} is a node of another graph")
        before, self._insert = self._insert, insert

        @contextlib.contextmanager
        def scope():
            try:
                yield
            finally:
                self._insert = before

        return scope()

    def erase_node(self, to_erase):
        """Takes a node out. Raises RuntimeError if others read it."""
        if to_erase.users:
            raise RuntimeError(f"{to_erase} can't be erased: {', '.join(map(str, to_erase.users))} read it")
        if to_erase.graph is not self:
            raise RuntimeError(f"{to_erase} is a node of another graph")
        if to_erase._erased:
            return
        to_erase._set_arguments((), {})
        to_erase._remove_from_list()
        to_erase._erased = True
        self._length -= 1

    # --- work on the whole ---

    def eliminate_dead_code(self, is_impure_node=None):
        """Takes out what nothing reads and what does nothing else either. Gives whether there was any."""
        is_impure = is_impure_node or Node.is_impure
        before = self._length
        for node in reversed(self.nodes):
            if not node.users and not is_impure(node):
                self.erase_node(node)
        return self._length < before

    def lint(self):
        """Raises RuntimeError where a node reads one that comes later, a name is given twice, or a path means
        nothing in the owning module.
        """
        seen, names = set(), set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used not in seen:
                    raise RuntimeError(f"{node} reads {used}, which does not come before it in this graph")
            if node.name in names:
                raise RuntimeError(f"there are two nodes of the name {node.name}")
            names.add(node.name)
            seen.add(node)
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                place = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(place, part):
                        raise RuntimeError(f"{node} has the target {node.target}, but "
                                           f"{type(place).__name__} has no attribute {part}")
                    place = getattr(place, part)

    def python_code(self, root_module="self", *, verbose=False, **options):
        """The program as Python: an object with the text as .src and the names it needs as .globals."""
        return python_code(self, root_module, verbose=verbose)

    def print_tabular(self):
        """Prints the nodes as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, target_text(n), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(len(row[k]) for row in rows) for k in range(5)]
        rows.insert(1, tuple("-" * w for w in widths))
        for row in rows:
            print("  ".join(text.ljust(w) for text, w in zip(row, widths)).rstrip())

    def __str__(self):
        return "\n    ".join(["graph():", *(node.format_node() for node in self.nodes)])

    def __deepcopy__(self, memo):
        made = Graph(tracer_cls=self._tracer_cls)
        copies = {}
        result = made.graph_copy(self, copies, return_output_node=True)
        if result is not None:
            value, old = result
            made.output(value, old.type).meta = dict(old.meta)
        return made

    def __reduce__(self):
        names, steps = {}, []
        for k, node in enumerate(self.nodes):
            names[node] = _Reference(k)
            args, kwargs = map_arg(node.args, names.get), map_arg(node.kwargs, names.get)
            steps.append((node.op, node.target, args, kwargs, node.name, node.type))
        return _rebuild, (steps,)


_CALLS = ("call_function", "call_method", "call_module")


class _Reference(int):
    """A node in a pickled graph, by its number."""


def _rebuild(steps):
    from .node import map_aggregate

    graph, nodes = Graph(), []

    def node_of(value):
        return nodes[value] if isinstance(value, _Reference) else value

    for op, target, args, kwargs, name, kind in steps:
        args, kwargs = map_aggregate(args, node_of), map_aggregate(kwargs, node_of)
        nodes.append(graph.create_node(op, target, args, kwargs, name, kind))
    return graph
