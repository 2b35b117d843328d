"""Modules whose attributes are switches that nothing reads here, but that programs set and read back."""
import contextlib


@contextlib.contextmanager
def _values(module, values):
    before = {name: module[name] for name in values if name in module}
    module.update(values)
    try:
        yield
    finally:
        for name in values.keys() - before.keys():
            del module[name]
        module.update(before)


def scope(module, **names):
    """flags() of a module: sets its attributes within a scope, to the values here where none is given."""
    def flags(**values):
        unknown = values.keys() - names.keys()
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument {unknown.pop()!r}; there is "
                            f"{', '.join(names)}")
        return _values(module, {**names, **values})

    return flags


def setter(module, *names):
    """set_flags() of a module: sets what is given, as _NAME; returns what was before."""
    expected = [f"_{name}" for name in names]

    def set_flags(*given, **values):
        values.update(zip(expected, given))
        unknown = values.keys() - set(expected)
        if unknown:
            raise TypeError(f"set_flags() got an unexpected keyword argument {unknown.pop()!r}; there is "
                            f"{', '.join(expected)}")
        before = tuple(module[name] for name in names)
        module.update({name[1:]: value for name, value in values.items() if value is not None})
        return before

    return set_flags


def patcher(module):
    """patch(name, value), patch({name: value}), patch(name=value) of a module: options within a scope."""
    def patch(changes=None, value=None, **more):
        return _values(module, {**({changes: value} if isinstance(changes, str) else changes or {}), **more})

    return patch
