"""Dictionaries that hold tensors weakly, by identity."""
import weakref
from collections.abc import MutableMapping

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A reference that equals another to the same object."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        return self() is other() if self() is not None else self is other


TensorWeakRef = weakref.ref


class WeakIdKeyDictionary(MutableMapping):
    """Keys are compared by identity, and go when nobody else has them."""

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.data = {}
        self.update(dict or {})

    def _ref(self, key):
        data = weakref.ref(self)

        def forget(reference):
            if (owner := data()) is not None:
                owner.data.pop(reference, None)

        return WeakIdRef(key, forget)

    def __getitem__(self, key):
        return self.data[WeakIdRef(key)]

    def __setitem__(self, key, value):
        self.data[self._ref(key)] = value

    def __delitem__(self, key):
        del self.data[WeakIdRef(key)]

    def __iter__(self):
        return iter([k for r in list(self.data) if (k := r()) is not None])

    def __len__(self):
        return len(self.data)


WeakTensorKeyDictionary = WeakIdKeyDictionary
