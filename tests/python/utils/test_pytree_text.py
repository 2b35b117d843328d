"""Trees as JSON; kinds of tuples."""
import collections
import enum
import json
import time

import pytest

import flambeau as fl
from flambeau.utils import _pytree as pytree

Point = collections.namedtuple("Point", "x y")
Nameless = collections.namedtuple("Nameless", "x")


class Colour(enum.Enum):
    RED = 1


class Box:
    def __init__(self, value, size):
        self.value, self.size = value, size


pytree.register_pytree_node(Box, lambda b: ([b.value], b.size), lambda c, size: Box(c[0], size),
                            serialized_type_name="tests.Box", to_dumpable_context=lambda size: f"size {size}",
                            from_dumpable_context=lambda text: int(text.split()[1]))
pytree._register_namedtuple(Point, serialized_type_name="tests.Point")


@pytest.mark.parametrize("tree", [
    1, [1, (2, [])], {"a": 1, 2: {}}, {Colour.RED: 1}, collections.OrderedDict(b=1, a=2), Point(1, [2]),
    Box(1, 7),
    collections.defaultdict(list, a=1), collections.defaultdict(None, a=1),
    collections.deque([1, 2], maxlen=3)])
def test_there_and_back(tree):
    spec = pytree.tree_structure(tree)
    back = pytree.treespec_loads(pytree.treespec_dumps(spec))
    assert back == spec
    again = pytree.tree_unflatten(pytree.tree_leaves(tree), back)
    assert type(again) is type(tree) and pytree.tree_structure(again) == spec


def test_the_text_is_pytorchs():
    leaf = {"type": None, "context": None, "children_spec": []}
    assert json.loads(pytree.treespec_dumps(pytree.tree_structure({"a": [1]}))) == [1, {
        "type": "builtins.dict", "context": '["a"]',
        "children_spec": [{"type": "builtins.list", "context": "null", "children_spec": [leaf]}]}]
    assert json.loads(pytree.treespec_dumps(pytree.tree_structure(Point(1, 2)))) == [1, {
        "type": "collections.namedtuple", "context": "tests.Point", "children_spec": [leaf, leaf]}]
    assert json.loads(pytree.treespec_dumps(pytree.tree_structure(Box(1, 7))))[1]["context"] == "size 7"


def test_what_cannot_be_written_or_read():
    with pytest.raises(NotImplementedError, match="Nameless"):
        pytree.treespec_dumps(pytree.tree_structure(Nameless(1)))
    with pytest.raises(TypeError, match="treespec"):
        pytree.treespec_dumps([1])
    with pytest.raises(ValueError, match="Unknown protocol 2"):
        pytree.treespec_loads('[2, {"type": null, "context": null, "children_spec": []}]')
    with pytest.raises(NotImplementedError, match="tests.Other"):
        pytree.treespec_loads('[1, {"type": "tests.Other", "context": "null", "children_spec": []}]')


def test_to_look_at():
    assert pytree.treespec_pprint(pytree.tree_structure({"a": [1, (2, 3)]})) == "{'a': [*, (*, *)]}"


def test_kinds_of_tuples():
    largest = fl.ones(2, 2).max(0)
    for x, named, struct in ((Point(1, 2), True, False), (largest, False, True), (time.gmtime(), False, True),
                             ((1, 2), False, False)):
        assert (pytree.is_namedtuple(x), pytree.is_namedtuple_instance(x), pytree.is_namedtuple(type(x)),
                pytree.is_namedtuple_class(type(x))) == (named,) * 4
        assert (pytree.is_structseq(x), pytree.is_structseq_instance(x), pytree.is_structseq(type(x)),
                pytree.is_structseq_class(type(x))) == (struct,) * 4
        assert not pytree.is_namedtuple_instance(type(x)) and not pytree.is_structseq_instance(type(x))
