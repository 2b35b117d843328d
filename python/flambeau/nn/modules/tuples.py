"""A number as several."""
from collections.abc import Iterable
from itertools import repeat


def _ntuple(count, name):
    def parse(value):
        return tuple(value) if isinstance(value, Iterable) else tuple(repeat(value, count))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values, count):
    return tuple(value for value in reversed(values) for _ in range(count))
