"""GraphModule: a module whose forward() is made from a Graph."""
import copy
import linecache

from ..nn import Module
from .graph import Graph

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_files = 0


class GraphModule(Module):
    """A module that runs a graph: GraphModule(root, graph).

    root: the module, or a dict from paths to values, that get_attr and call_module nodes name things of;
    those are taken over. After a change of the graph recompile() makes forward() anew; so does setting
    .graph.
    """

    def __new__(cls, *args, **kwargs):
        # forward() belongs to the one module: each has a class of its own.
        own = cls if "_shown_class" in cls.__dict__ else cls._class_for(cls.__name__)
        return super().__new__(own)

    @classmethod
    def _class_for(cls, name):
        return type(name, (cls,), {"_shown_class": cls, "__module__": cls.__module__, "__qualname__": name})

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        type(self).__name__ = type(self).__qualname__ = class_name
        if isinstance(root, Module) and hasattr(root, "training"):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                self._take(root, node.target)
        self.meta = {}
        self.graph = graph

    def _take(self, root, target):
        if isinstance(root, Module):
            _copy_attr(root, self, target)
            return
        if target not in root:
            raise RuntimeError(f"GraphModule: the graph names {target!r}, but the dict of values has no such "
                               "key")
        _set_attr(self, target, root[target])

    @property
    def graph(self):
        """The graph. After changes of it call recompile()."""
        return self._graph

    @graph.setter
    def graph(self, graph):
        if not isinstance(graph, Graph):
            raise TypeError(f"GraphModule: expected a Graph, got {type(graph).__name__}")
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self):
        """The text of forward()."""
        return self._code

    def recompile(self):
        """Makes forward() from the graph as it is now; gives its code."""
        global _files
        made = self._graph.python_code("self")
        self._code = made.src
        _files += 1
        file = f"<graph {_files}>"
        linecache.cache[file] = (len(made.src), None, made.src.splitlines(True), file)
        names = made.globals
        exec(compile(made.src, file, "exec"), names)
        cls = type(self)
        cls.forward = names["forward"]
        cls.forward.__qualname__ = f"{cls.__name__}.forward"
        return made

    def print_readable(self, print_output=True, include_stride=False, include_device=False, colored=False,
                       **options):
        """The code with what is known of each value and the lines of the program that it comes from."""
        code = self._graph.python_code("self", verbose=True).src.strip("\n")
        body = "".join(f"    {line}\n" if line else "\n" for line in code.split("\n"))
        text = f"class {type(self).__name__}(torch.nn.Module):\n{body}"
        if print_output:
            print(text)
        return text

    def add_submodule(self, target, m):
        """Adds a submodule at a path, with modules in between where there are none. Gives whether it did."""
        *path, name = target.split(".")
        place = self
        for part in path:
            inner = getattr(place, part, None)
            if inner is None:
                inner = Module()
                setattr(place, part, inner)
            if not isinstance(inner, Module):
                return False
            place = inner
        place.add_module(name, m)
        return True

    def delete_submodule(self, target):
        """Takes the submodule at a path away. Gives whether there was one."""
        *path, name = target.split(".")
        place = self
        for part in path:
            place = getattr(place, part, None)
        if not isinstance(place, Module) or not isinstance(getattr(place, name, None), Module):
            return False
        delattr(place, name)
        return True

    def delete_all_unused_submodules(self):
        """Takes away the submodules that no node names, nor one inside them."""
        used = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:k]) for k in range(1, len(parts) + 1))
                if node.op == "call_module":
                    inner = self.get_submodule(node.target)
                    used.update(f"{node.target}.{name}" for name, _ in inner.named_modules())
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def __deepcopy__(self, memo):
        attributes = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        return _rebuild(type(self)._shown_class, type(self).__name__, copy.deepcopy(attributes, memo),
                        copy.deepcopy(self._graph, memo))

    def __copy__(self):
        attributes = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        return _rebuild(type(self)._shown_class, type(self).__name__, attributes, copy.deepcopy(self._graph))

    def __reduce__(self):
        attributes = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        return _rebuild, (type(self)._shown_class, type(self).__name__, attributes, self._graph)

    def __str__(self):
        return f"{super().__str__()}\n{self._code}"


def _rebuild(cls, name, attributes, graph):
    made = cls.__new__(cls)
    type(made).__name__ = type(made).__qualname__ = name
    made.__dict__.update(attributes)
    made.graph = graph
    return made


class _CodeOnlyModule(Module):
    pass


def _set_attr(module, target, value):
    *path, name = target.split(".")
    for part in path:
        if not hasattr(module, part):
            setattr(module, part, Module())
        module = getattr(module, part)
    from .. import _C

    if isinstance(value, _C.Tensor) and not isinstance(value, _parameter()):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _parameter():
    from ..nn import Parameter

    return Parameter


def _copy_attr(from_module, to_module, target):
    """Takes what a dotted name means over from one module to another."""
    *path, name = target.split(".")
    for part in path:
        inner = getattr(from_module, part)
        if inner is getattr(to_module, part, None):
            return
        if not hasattr(to_module, part):
            setattr(to_module, part, Module())
        from_module, to_module = inner, getattr(to_module, part)
    _set_attr(to_module, name, getattr(from_module, name))
