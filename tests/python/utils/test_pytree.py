"""Nested containers as trees."""
import collections
import dataclasses

import pytest

from flambeau.utils import _pytree as pytree

Point = collections.namedtuple("Point", "x y")
TREE = {"a": [1, (2, None)], "p": Point(3, [4]), "o": collections.OrderedDict(z=5),
        "q": collections.deque([6], maxlen=2),
        "d": collections.defaultdict(list, k=7), "e": []}


def test_there_and_back():
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == [1, 2, None, 3, 4, 5, 6, 7] and spec.num_leaves == 8
    back = pytree.tree_unflatten(leaves, spec)
    assert back == TREE and type(back["p"]) is Point
    assert back["q"].maxlen == 2 and back["d"].default_factory is list
    assert pytree.tree_structure(back) == spec and pytree.tree_structure([1]) != pytree.tree_structure((1,))
    with pytest.raises(ValueError, match="has length 2"):
        pytree.tree_unflatten([1, 2], spec)


def test_map():
    assert pytree.tree_map(lambda a, b: a + b, {"x": [1, 2]}, {"x": [10, 20]}) == {"x": [11, 22]}
    assert pytree.tree_map(lambda a, b: (a, b), [1], [{"k": 2}]) == [(1, {"k": 2})]
    assert pytree.tree_map_only(int, lambda i: -i, ["a", 1, (2.5, 3)]) == ["a", -1, (2.5, -3)]
    assert pytree.tree_all(lambda x: x > 0, [1, [2]]) and pytree.tree_any(lambda x: x > 1, [1, [2]])
    assert pytree.tree_leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    with pytest.raises(ValueError, match="mismatch"):
        pytree.tree_map(lambda a, b: a, [1, 2], [1])


def test_paths():
    pairs, _ = pytree.tree_flatten_with_path({"a": [1, Point(2, 3)]})
    assert [(pytree.keystr(path), leaf) for path, leaf in pairs] == [("['a'][0]", 1), ("['a'][1].x", 2),
                                                                     ("['a'][1].y", 3)]
    assert all(pytree.key_get({"a": [1, Point(2, 3)]}, path) == leaf for path, leaf in pairs)
    assert pytree.tree_map_with_path(lambda path, x: len(path) * x, [1, [2]]) == [1, [4]]


def test_registered_classes():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda children, _: Pair(*children))
    assert pytree.tree_map(lambda x: x * 2, Pair(1, [2])).b == [4]
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, None, None)

    @dataclasses.dataclass
    class Output:
        logits: int
        loss: int = None

    pytree.register_dataclass(Output)
    assert pytree.tree_leaves(Output(3)) == [3] and pytree.tree_map(lambda x: x + 1, Output(3)) == Output(4)


def test_broadcast():
    spec = pytree.tree_structure([(1, 2), 3])
    assert pytree._broadcast_to_and_flatten(0, spec) == [0, 0, 0]
    assert pytree._broadcast_to_and_flatten([5, 6], spec) == [5, 5, 6]
    assert pytree._broadcast_to_and_flatten([5], spec) is None
