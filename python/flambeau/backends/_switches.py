"""Modules whose attributes are switches that nothing reads here, but that programs set and read back."""
import contextlib


def scope(module, **names):
    """A context manager that sets attributes of a module and gives them back."""
    @contextlib.contextmanager
    def flags(**values):
        unknown = values.keys() - names.keys()
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument {unknown.pop()!r}")
        before = {name: module[name] for name in names}
        module.update({**names, **values})
        try:
            yield
        finally:
            module.update(before)

    return flags
