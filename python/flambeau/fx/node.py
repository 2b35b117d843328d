"""Node: no graph in Python has one."""
from typing import Any, Callable

Target, Argument = Callable | str, Any


class Node:
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch.fx.Node is not supported: Flambeau's graphs are not made of Python objects")


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
