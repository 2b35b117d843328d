"""Handles of registered hooks."""
import itertools
import weakref
from collections import OrderedDict

__all__ = ["RemovableHandle"]


class RemovableHandle:
    """What registering a hook returns: remove() takes the hook away again. A context manager too.

    The handle does not keep the owner of the hooks alive.
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.id = next(RemovableHandle._ids)
        self._dicts = [hooks_dict]
        if extra_dict is not None:
            self._dicts += extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self._dicts = [weakref.ref(d) for d in self._dicts]

    def remove(self):
        for reference in self._dicts:
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()

    def __getstate__(self):
        return self.id, [reference() for reference in self._dicts]

    def __setstate__(self, state):
        self.id, dicts = state
        self._dicts = [weakref.ref(d if d is not None else OrderedDict()) for d in dicts]
        RemovableHandle._ids = itertools.count(max(next(RemovableHandle._ids), self.id + 1))
