"""Node: one value of a Graph, or its output."""
import builtins
import operator
import types
from typing import Any, Callable

from .. import _C

Target, Argument = Callable | str, Any

_OPERATIONS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
_CHANGING = {operator.setitem, operator.delitem, builtins.setattr, builtins.delattr}


class Node:
    """One step of a graph: `op` says of what kind, `target` which.

    op               target                 args, kwargs
    placeholder      name of the argument   its default, if there is one
    get_attr         path of an attribute   none
    call_function    the function           its arguments
    call_method      name of the method     the object, then the method's arguments
    call_module      path of a submodule    its arguments
    output           "output"               what the graph returns, as one argument

    Arguments are nodes, numbers, text, dtypes, None, ... and lists, tuples, dicts and slices of those.
    `users` are the nodes that read this one, `meta` is a dict for whoever works on the graph.
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in _OPERATIONS:
            raise ValueError(f"Node: expected op to be one of {', '.join(_OPERATIONS)}, got {op!r}")
        if op == "call_function":
            if not callable(target):
                raise ValueError("Node: expected the target of a call_function to be callable, got "
                                 f"{target!r}")
        elif not isinstance(target, str):
            raise ValueError(f"Node: expected the target of a {op} to be a str, got {target!r}")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users, self.meta, self._inputs = {}, {}, {}
        self._prev = self._next = self
        self._erased = False
        self._args, self._kwargs = (), {}
        self._set_arguments(args, kwargs)

    @property
    def args(self):
        """Arguments by position. Set as a whole; see update_arg()."""
        return self._args

    @args.setter
    def args(self, args):
        self._set_arguments(args, self._kwargs)

    @property
    def kwargs(self):
        """Arguments by keyword. Set as a whole; see update_kwarg()."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs):
        self._set_arguments(self._args, kwargs)

    def _set_arguments(self, args, kwargs):
        self._args, self._kwargs = map_aggregate(tuple(args), _same), map_aggregate(dict(kwargs), _same)
        for node in self._inputs:
            node.users.pop(self, None)
        self._inputs = {}
        map_arg((self._args, self._kwargs), lambda node: self._inputs.setdefault(node))
        for node in self._inputs:
            node.users[self] = None

    @property
    def all_input_nodes(self):
        """The nodes among the arguments, each once."""
        return list(self._inputs)

    @property
    def next(self):
        """The node after this one."""
        return self._next

    @property
    def prev(self):
        """The node before this one."""
        return self._prev

    @property
    def stack_trace(self):
        """Where in the program the node comes from; None if that is not known."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, text):
        self.meta["stack_trace"] = text

    def update_arg(self, index, value):
        """Another argument in the place of number `index`."""
        args = list(self._args)
        args[index] = value
        self.args = tuple(args)

    def insert_arg(self, index, value):
        """One more argument, in front of number `index`."""
        if not 0 <= index <= len(self._args):
            raise IndexError(f"insert_arg(): expected an index from 0 to {len(self._args)}, got {index}")
        self.args = (*self._args[:index], value, *self._args[index:])

    def update_kwarg(self, key, value):
        """Another argument under a keyword."""
        self.kwargs = {**self._kwargs, key: value}

    def _remove_from_list(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, node):
        """Moves a node of the same graph to the place in front of this one."""
        if node.graph is not self.graph:
            raise ValueError(f"{node} is a node of another graph than {self}")
        if node is self:
            return
        node._remove_from_list()
        before = self._prev
        before._next, node._prev = node, before
        node._next, self._prev = self, node

    def append(self, node):
        """Moves a node of the same graph to the place after this one."""
        self._next.prepend(node)

    def replace_input_with(self, old, new):
        """Every use of `old` among the arguments becomes `new`."""
        def change(node):
            return new if node is old else node

        self._set_arguments(map_arg(self._args, change), map_arg(self._kwargs, change))

    def replace_all_uses_with(self, replacement, delete_user_cb=lambda user: True, *, propagate_meta=False):
        """Every node that reads this one reads `replacement` instead, where delete_user_cb(node) is true.
        Gives the nodes that were changed; nodes that stay users are not among them.
        """
        if propagate_meta:
            if replacement.meta:
                raise ValueError(f"replace_all_uses_with(): {replacement} has a meta of its own already")
            replacement.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replacement)
        return changed

    def is_impure(self, impure_random=True):
        """Whether the node does more than to give a value."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            module = self.graph.owning_module
            return module is None or not getattr(module.get_submodule(self.target), "_is_pure", False)
        if self.op == "get_attr":
            return False
        name = self.target if self.op == "call_method" else getattr(self.target, "__name__", "")
        if self.target in _CHANGING or name.startswith("_set_") or "out" in self._kwargs:
            return True
        if self.op == "call_function" and getattr(self.target, "__module__", "") == "_operator":
            return name.startswith("i") and hasattr(operator, name[1:]) or name in ("ior", "iand", "iconcat")
        changes = name.endswith("_") and not name.endswith("__")
        return changes or name == "backward" or impure_random and name in _RANDOM

    def format_node(self, placeholder_names=None, maybe_return_typename=None, *,
                    include_tensor_metadata=False):
        """The line of the graph's text."""
        kind = f" : {type_text(self.type)}" if self.type is not None else ""
        head = f"%{self.name}{kind} [num_users={len(self.users)}] = {self.op}[target={target_text(self)}]"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(self.target)
            default = f"(default={self._args[0]})" if self._args else ""
            return head + default
        if self.op == "get_attr":
            return head
        if self.op == "output":
            return f"return {_arguments_text(self._args[0]).replace('%', '')}"
        args = ", ".join(map(_arguments_text, self._args)) + ("," if len(self._args) == 1 else "")
        kwargs = ", ".join(f"{k}: {_arguments_text(v)}" for k, v in self._kwargs.items())
        return f"{head}(args = ({args}), kwargs = {{{kwargs}}})"

    def _rename(self, name):
        self.name = self.graph._names.free(name, self)

    def __repr__(self):
        return self.name

    def __lt__(self, other):
        """Whether the node comes before another one of its graph."""
        node = self._next
        while node is not self.graph._root:
            if node is other:
                return True
            node = node._next
        return False

    def __gt__(self, other):
        return other < self


_RANDOM = {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli",
           "dropout", "multinomial", "normal", "poisson", "alpha_dropout", "feature_dropout", "rrelu"}


def _same(x):
    return x


def map_arg(a, fn):
    """Nested arguments with every Node replaced."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a, fn):
    """Nested arguments with every leaf replaced."""
    if isinstance(a, tuple):
        items = tuple(map_aggregate(x, fn) for x in a)
        return type(a)(*items) if hasattr(a, "_fields") else items
    if isinstance(a, list):
        return [map_aggregate(x, fn) for x in a]
    if isinstance(a, dict):
        return {k: map_aggregate(v, fn) for k, v in a.items()}
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


# --- texts ---

def _arguments_text(a):
    if isinstance(a, Node):
        return f"%{a.name}"
    if isinstance(a, tuple):
        return f"({', '.join(map(_arguments_text, a))}{',' if len(a) == 1 else ''})"
    if isinstance(a, list):
        return f"[{', '.join(map(_arguments_text, a))}]"
    if isinstance(a, dict):
        return f"{{{', '.join(f'{k}: {_arguments_text(v)}' for k, v in a.items())}}}"
    return str(a)


def type_text(kind):
    """A type as code names it."""
    if kind is _C.Tensor:
        return "torch.Tensor"
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        return _qualified(kind.__module__, kind.__qualname__)
    return str(kind).replace("flambeau.", "torch.")


def target_text(node):
    """The target as code names it."""
    return node.target if isinstance(node.target, str) else function_text(node.target)


def _qualified(module, name):
    if module in (None, "builtins"):
        return name
    parts = module.split(".")
    if parts[0] == __name__.split(".")[0]:
        parts[0] = "torch"
    return ".".join((*("operator" if p == "_operator" else p for p in parts), name))


# Where functions are looked for, in this order, with the names that programs call the places by.
_PLACES = ("nn.functional", "", "linalg", "fft", "special", "_C", "Tensor")


def function_text(function):
    """A path at which programs find the function, or the name that it has."""
    import flambeau

    name = getattr(function, "__name__", None) or type(function).__name__
    for path in _PLACES if name[0] != "_" else ("_C",):
        place = flambeau
        for part in filter(None, path.split(".")):
            place = getattr(place, part)
        known = name
        for prefix in ("linalg_", "fft_", "special_"):
            if path + "_" == prefix and name.startswith(prefix):
                known = name[len(prefix):]
        if getattr(place, known, None) is function:
            return ".".join(filter(None, ("torch", path, known)))
    return _qualified(getattr(function, "__module__", None), getattr(function, "__qualname__", None) or name)
