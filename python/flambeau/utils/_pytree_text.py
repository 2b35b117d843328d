"""Descriptions of trees as text: JSON that PyTorch reads too, and a line to look at."""
import enum
import importlib
import json
from collections import OrderedDict, defaultdict, deque

from . import _pytree

_PROTOCOL = 1
_PLAIN = {tuple: "builtins.tuple", list: "builtins.list", dict: "builtins.dict", deque: "collections.deque",
          OrderedDict: "collections.OrderedDict", defaultdict: "collections.defaultdict"}
_named = {}  # named tuples' classes, and the names to write


def register_namedtuple(cls, *, serialized_type_name):
    """Trees with this named tuple can be written, under this name."""
    _named[cls] = serialized_type_name


def treespec_dumps(treespec, protocol=None):
    """A tree without its leaves as JSON. Its classes need a name:
    register_pytree_node(serialized_type_name=...).
    """
    if not isinstance(treespec, _pytree.TreeSpec):
        raise TypeError("Expected `treespec` to be an instance of TreeSpec but got item of type "
                        f"{type(treespec)}.")
    _check_protocol(_PROTOCOL if protocol is None else protocol)
    return json.dumps((_PROTOCOL, _node_to_json(treespec)))


def treespec_loads(serialized):
    """The tree that treespec_dumps() wrote. The classes in it are registered already."""
    protocol, root = json.loads(serialized)
    _check_protocol(protocol)
    return _node_from_json(root)


def _check_protocol(protocol):
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")


def _node_to_json(spec):
    name, context = (None, None) if spec.is_leaf() else _written(spec.type, spec.context)
    return {"type": name, "context": context,
            "children_spec": [_node_to_json(c) for c in spec.children_specs]}


def _written(cls, context):
    """The name of a node's class and its context, as they stand in the file."""
    if _pytree.is_namedtuple_class(cls):
        if cls not in _named:
            raise NotImplementedError(f"the named tuple {cls} has no name to be written under: give it one "
                                      "by "
                                      "_register_namedtuple(cls, serialized_type_name=...)")
        return "collections.namedtuple", _named[cls]
    if cls is defaultdict:
        factory, keys = context
        return _PLAIN[cls], {"default_factory_module": getattr(factory, "__module__", None),
                             "default_factory_name": getattr(factory, "__name__", None), "dict_context": keys}
    name, to_dumpable, _ = _pytree.SUPPORTED_SERIALIZED_TYPES.get(cls, (None, None, None))
    name = _PLAIN.get(cls, name)
    if name is None:
        raise NotImplementedError(f"{cls} has no name to be written under: give its register_pytree_node() a "
                                  "`serialized_type_name`")
    if to_dumpable is not None:
        return name, to_dumpable(context)
    try:
        return name, json.dumps(context, default=_enum_to_json)
    except TypeError as error:
        raise TypeError(f"the context of {cls} is not JSON: give its register_pytree_node() a "
                        "`to_dumpable_context` and a `from_dumpable_context`") from error


def _enum_to_json(value):
    if not isinstance(value, enum.Enum):
        raise TypeError(f"{type(value).__name__} is not JSON")
    cls = type(value)
    return {"__enum__": True, "fqn": f"{cls.__module__}:{cls.__qualname__}", "name": value.name}


def _enum_from_json(entry):
    if not entry.get("__enum__"):
        return entry
    module, name = entry["fqn"].split(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found[entry["name"]]


def _node_from_json(entry):
    name, context = entry["type"], entry["context"]
    if name is None:
        return _pytree.treespec_leaf()
    children = [_node_from_json(c) for c in entry["children_spec"]]
    if name == "collections.namedtuple":
        cls = _class_named(context, _named.items())
        return _pytree.TreeSpec(cls, cls, children, _pytree._named)
    known = ((c, n) for c, (n, _, _) in _pytree.SUPPORTED_SERIALIZED_TYPES.items())
    cls = _class_named(name, (*_PLAIN.items(), *known))
    from_dumpable = None if cls in _PLAIN else _pytree.SUPPORTED_SERIALIZED_TYPES[cls][2]
    if from_dumpable is not None:
        context = from_dumpable(context)
    elif cls is defaultdict:
        context = _factory(context), context["dict_context"]
    else:
        context = json.loads(context, object_hook=_enum_from_json)
    return _pytree.TreeSpec(cls, context, children, _pytree.SUPPORTED_NODES[cls])


def _class_named(name, pairs):
    for cls, known in pairs:
        if known == name:
            return cls
    raise NotImplementedError(f"no class is registered under the name {name} in this process: import the "
                              "package "
                              "that registers it first")


def _factory(context):
    if context["default_factory_module"] is None:
        return None
    return getattr(importlib.import_module(context["default_factory_module"]),
                   context["default_factory_name"])


def treespec_pprint(treespec):
    """The tree with * for each leaf."""
    return repr(_pytree.tree_unflatten([_Star()] * treespec.num_leaves, treespec))


class _Star:
    def __repr__(self):
        return "*"
