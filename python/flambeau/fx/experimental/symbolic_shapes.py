"""Functions on symbolic sizes that programs call on plain ones too."""


def guard_or_true(condition):
    return bool(condition)


def guard_or_false(condition):
    return bool(condition)


def guard_size_oblivious(condition):
    return bool(condition)


def statically_known_true(condition):
    return condition is True


def is_concrete_int(a):
    return isinstance(a, int)


def is_symbolic(value):
    return False
