"""Nested containers as trees: their leaves as a list, and a description that puts leaves back.

Nodes are dicts, lists, tuples, named tuples, OrderedDict, defaultdict, deque and registered classes; None and
all else are leaves.
"""
import dataclasses
import importlib
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any, Callable, NamedTuple

from .. import _C

__all__ = ["KeyEntry", "KeyPath", "LeafSpec", "PyTree", "PyTreeSpec", "TreeSpec", "is_namedtuple",
           "is_namedtuple_class", "is_namedtuple_instance", "is_structseq", "is_structseq_class",
           "is_structseq_instance", "keystr", "key_get", "register_constant",
           "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only", "tree_any",
           "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter",
           "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_",
           "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_dumps", "treespec_loads",
           "treespec_pprint"]

PyTree, Context, KeyPath = Any, Any, tuple


# Places in a tree.
@dataclasses.dataclass(frozen=True)
class SequenceKey:
    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


KeyEntry = Any


def keystr(path):
    """A path as text: "['a'][0].b"."""
    return "".join(map(str, path))


def key_get(tree, path):
    """What is at a path."""
    for key in path:
        tree = key.get(tree)
    return tree


# Kinds of nodes.
class NodeDef(NamedTuple):
    type: type
    flatten_fn: Callable  # node -> (children, context)
    unflatten_fn: Callable  # (children, context) -> node
    flatten_with_keys_fn: Callable | None = None  # node -> ([(key, child), ...], context)


SUPPORTED_NODES = {}
CONSTANT_NODES = set()
SUPPORTED_SERIALIZED_TYPES = {}


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None,
                         to_dumpable_context=None, from_dumpable_context=None, flatten_with_keys_fn=None):
    """Objects of a class are nodes from now on. flatten_fn(node): (children, context); unflatten_fn(children,
    context): the node. The other arguments are for programs that write trees to files.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = serialized_type_name, to_dumpable_context, from_dumpable_context


def _register_pytree_node(cls, flatten_fn, unflatten_fn, **options):
    if cls not in SUPPORTED_NODES:
        register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


_private_register_pytree_node = _register_pytree_node


def _deregister_pytree_node(cls):
    SUPPORTED_NODES.pop(cls, None)


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Objects of a dataclass are nodes; fields that are None are left out."""
    names = field_names or [f.name for f in dataclasses.fields(cls) if f.init]
    names = [n for n in names if n not in (drop_field_names or ())]

    def flatten(x):
        there = [n for n in names if getattr(x, n) is not None]
        return [getattr(x, n) for n in there], (there, [n for n in names if n not in there])

    def unflatten(children, context):
        return cls(**dict(zip(context[0], children)), **dict.fromkeys(context[1]))

    def with_keys(x):
        children, context = flatten(x)
        return [(GetAttrKey(n), c) for n, c in zip(context[0], children)], context

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
                         flatten_with_keys_fn=with_keys)


def register_constant(cls):
    """Objects of a class have no leaves: they are part of the structure."""
    register_pytree_node(cls, lambda x: ([], x), lambda children, context: context)
    CONSTANT_NODES.add(cls)


def is_constant_class(cls):
    return cls in CONSTANT_NODES


def _list_flatten(x):
    return list(x), None


def _list_flatten_with_keys(x):
    return [(SequenceKey(i), child) for i, child in enumerate(x)], None


def _list_unflatten(children, context):
    return list(children)


def _dict_flatten(x):
    return list(x.values()), list(x)


def _dict_flatten_with_keys(x):
    return [(MappingKey(k), v) for k, v in x.items()], list(x)


def _dict_unflatten(children, context):
    return dict(zip(context, children))


register_pytree_node(tuple, _list_flatten, lambda c, _: tuple(c),
                     flatten_with_keys_fn=_list_flatten_with_keys)
register_pytree_node(list, _list_flatten, _list_unflatten, flatten_with_keys_fn=_list_flatten_with_keys)
register_pytree_node(dict, _dict_flatten, _dict_unflatten, flatten_with_keys_fn=_dict_flatten_with_keys)
register_pytree_node(OrderedDict, _dict_flatten, lambda c, keys: OrderedDict(zip(keys, c)),
                     flatten_with_keys_fn=_dict_flatten_with_keys)
register_pytree_node(defaultdict, lambda x: (list(x.values()), (x.default_factory, list(x))),
                     lambda c, context: defaultdict(context[0], zip(context[1], c)),
                     flatten_with_keys_fn=lambda x: (_dict_flatten_with_keys(x)[0],
                                                     (x.default_factory, list(x))))
register_pytree_node(deque, lambda x: (list(x), x.maxlen), lambda c, length: deque(c, maxlen=length),
                     flatten_with_keys_fn=lambda x: (_list_flatten_with_keys(x)[0], x.maxlen))
_named = NodeDef(tuple, lambda x: (list(x), type(x)), lambda c, cls: cls(*c),
                 lambda x: ([(GetAttrKey(n), c) for n, c in zip(x._fields, x)], type(x)))
SUPPORTED_NODES[_C.Size] = SUPPORTED_NODES[tuple]


def is_namedtuple_class(cls):
    """Whether a class is one that collections.namedtuple() or typing.NamedTuple made, itself."""
    return isinstance(cls, type) and cls.__bases__ == (tuple,) and hasattr(cls, "_fields")


def is_namedtuple_instance(x):
    return is_namedtuple_class(type(x))


def is_namedtuple(x):
    return is_namedtuple_class(x if isinstance(x, type) else type(x))


def is_structseq_class(cls):
    """Whether a class is one of several named results: torch.return_types.max, time.struct_time, ..."""
    return (isinstance(cls, type) and cls.__bases__ == (tuple,) and
            all(isinstance(getattr(cls, n, None), int)
                for n in ("n_fields", "n_sequence_fields", "n_unnamed_fields")))


def is_structseq_instance(x):
    return is_structseq_class(type(x))


def is_structseq(x):
    return is_structseq_class(x if isinstance(x, type) else type(x))


def _node_of(x, is_leaf=None):
    """The node's definition, None for a leaf."""
    if is_leaf is not None and is_leaf(x):
        return None
    known = SUPPORTED_NODES.get(type(x))
    if known is None and (is_namedtuple_instance(x) or type(x).__module__.endswith("return_types")):
        return _named if hasattr(x, "_fields") else _struct
    return known


_struct = NodeDef(tuple, lambda x: (list(x), type(x)), lambda c, cls: cls(c))


def tree_is_leaf(tree, is_leaf=None):
    return _node_of(tree, is_leaf) is None


_is_leaf = tree_is_leaf


# Structures.
@dataclasses.dataclass(frozen=True, eq=False)
class TreeSpec:
    """A tree without its leaves."""
    type: Any
    context: Any
    children_specs: list
    node: Any = dataclasses.field(default=None, repr=False)

    @property
    def num_leaves(self):
        return sum(c.num_leaves for c in self.children_specs)

    @property
    def num_nodes(self):
        return 1 + sum(c.num_nodes for c in self.children_specs)

    @property
    def num_children(self):
        return len(self.children_specs)

    def is_leaf(self):
        return False

    def children(self):
        return list(self.children_specs)

    def child(self, index):
        return self.children_specs[index]

    def __eq__(self, other):
        return (isinstance(other, TreeSpec) and (self.type, self.context) == (other.type, other.context) and
                self.children_specs == other.children_specs)

    def __hash__(self):
        return hash((self.type, repr(self.context), tuple(self.children_specs)))

    def __repr__(self):
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"

    def unflatten(self, leaves):
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree):
        """The parts of a tree that stand where this one has leaves."""
        node = _node_of(tree)
        if node is None or type(tree) is not self.type:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = node.flatten_fn(tree)
        if len(children) != len(self.children_specs):
            raise ValueError(f"Node arity mismatch; expected {len(self.children_specs)}, but got "
                             f"{len(children)}.")
        if self.type in (dict, OrderedDict):
            if set(context) != set(self.context):
                raise ValueError(f"Node keys mismatch; expected {self.context}, but got {context}.")
            children = [tree[k] for k in self.context]
        return [x for spec, child in zip(self.children_specs, children) for x in spec.flatten_up_to(child)]


class LeafSpec(TreeSpec):
    def __init__(self):
        super().__init__(None, None, [])

    num_leaves = num_nodes = 1

    def is_leaf(self):
        return True

    def flatten_up_to(self, tree):
        return [tree]

    def __repr__(self):
        return "*"


_LEAF, PyTreeSpec = LeafSpec(), TreeSpec


def treespec_leaf():
    return _LEAF


def treespec_tuple(iterable=()):
    return TreeSpec(tuple, None, list(iterable), SUPPORTED_NODES[tuple])


def treespec_dict(mapping=(), **kwargs):
    items = dict(mapping, **kwargs)
    return TreeSpec(dict, list(items), list(items.values()), SUPPORTED_NODES[dict])


def tree_flatten(tree, is_leaf=None):
    """(leaves, structure)."""
    leaves = []

    def visit(x):
        node = _node_of(x, is_leaf)
        if node is None:
            leaves.append(x)
            return _LEAF
        children, context = node.flatten_fn(x)
        return TreeSpec(type(x), context, [visit(c) for c in children], node)

    structure = visit(tree)
    return leaves, structure


def tree_unflatten(leaves, treespec):
    """The tree of these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError("tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec "
                        f"but got item of type {type(treespec)}.")
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: `leaves` has length {len(leaves)}, but the treespec has "
                         f"{treespec.num_leaves} leaves ({treespec}).")
    given = iter(leaves)

    def build(spec):
        if spec.is_leaf():
            return next(given)
        return spec.node.unflatten_fn([build(c) for c in spec.children_specs], spec.context)

    return build(treespec)


def tree_iter(tree, is_leaf=None):
    node = _node_of(tree, is_leaf)
    if node is None:
        yield tree
        return
    for child in node.flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree of func(leaf, the other trees' leaves)."""
    leaves, structure = tree_flatten(tree, is_leaf)
    others = [structure.flatten_up_to(r) for r in rests]
    return tree_unflatten(map(func, leaves, *others), structure)


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls func for every leaf, and returns the tree."""
    leaves, structure = tree_flatten(tree, is_leaf)
    for args in zip(leaves, *(structure.flatten_up_to(r) for r in rests)):
        func(*args)
    return tree


def _only(kinds, func, otherwise):
    if isinstance(kinds, (type, tuple, types.UnionType)):
        return lambda x: func(x) if isinstance(x, kinds) else otherwise(x)
    return lambda x: func(x) if kinds(x) else otherwise(x)


def map_only(kinds):
    """A decorator: the function acts on leaves of these types only (or for which kinds(leaf) is true)."""
    return lambda func: _only(kinds, func, lambda x: x)


def tree_map_only(type_or_types_or_pred, func, tree, is_leaf=None):
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, func, tree, is_leaf=None):
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, pred, tree, is_leaf=None):
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, pred, tree, is_leaf=None):
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_flatten_with_path(tree, is_leaf=None):
    """([(path, leaf), ...], structure)."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    out = []

    def visit(x, path):
        node = _node_of(x, is_leaf)
        if node is None:
            out.append((path, x))
            return
        if node.flatten_with_keys_fn is not None:
            pairs = node.flatten_with_keys_fn(x)[0]
        else:
            pairs = [(SequenceKey(i), c) for i, c in enumerate(node.flatten_fn(x)[0])]
        for key, child in pairs:
            visit(child, (*path, key))

    visit(tree, ())
    return out


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """As tree_map, with the path as first argument."""
    pairs, structure = tree_flatten_with_path(tree, is_leaf)
    others = [structure.flatten_up_to(r) for r in rests]
    return tree_unflatten([func(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others)], structure)


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """Leaves of a tree that is a prefix of the structure, repeated; None if it is not."""
    if _node_of(tree, is_leaf) is None:
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or type(tree) is not treespec.type:
        return None
    children, context = _node_of(tree).flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    parts = [_broadcast_to_and_flatten(c, s, is_leaf) for c, s in zip(children, treespec.children_specs)]
    return None if any(p is None for p in parts) else [x for p in parts for x in p]


def arg_tree_leaves(*args, **kwargs):
    return [x for value in (*args, *kwargs.values()) for x in tree_iter(value)]


def _register_namedtuple(cls, *, serialized_type_name):
    """treespec_dumps() writes this named tuple under this name."""
    _pytree_text().register_namedtuple(cls, serialized_type_name=serialized_type_name)


def _pytree_text():
    return importlib.import_module("._pytree_text", __package__)


def __getattr__(name):
    if name in ("treespec_dumps", "treespec_loads", "treespec_pprint"):
        return getattr(_pytree_text(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
