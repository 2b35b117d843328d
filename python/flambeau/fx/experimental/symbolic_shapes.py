"""Functions on symbolic sizes that programs call on plain ones too."""
from ..._C import SymInt


def guard_or_true(condition):
    return bool(condition)


def guard_or_false(condition):
    return bool(condition)


def guard_size_oblivious(condition):
    return bool(condition)


def statically_known_true(condition):
    return condition is True


def is_concrete_int(a):
    return isinstance(a, int) and not isinstance(a, SymInt)


def is_symbolic(value):
    return isinstance(value, SymInt)
