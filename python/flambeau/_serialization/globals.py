"""Names in files: PyTorch's. `torch.nn.modules.linear Linear` is flambeau.nn.modules.linear.Linear here."""
import pickle
import types

from .. import storage
from .._C import UntypedStorage

_OWN, _THEIRS = __name__.split(".")[0], "torch"
# Classes that PyTorch has elsewhere.
_HOMES = {(f"{_OWN}._C", "UntypedStorage"): "torch.storage",
          (f"{_OWN}._C", "_tensor_on_storage"): "torch._utils"}


def storage_class(typed):
    """The class that stands for a typed storage's dtype, such as torch.FloatStorage."""
    return getattr(storage, typed._pickle_storage_type(), None) or UntypedStorage


def theirs(module, name):
    """The module under which PyTorch knows a name of ours."""
    if module.split(".")[0] != _OWN:
        return module
    of_dtype = name.endswith("Storage") and name not in ("TypedStorage", "UntypedStorage")
    if module == f"{_OWN}.storage" and of_dtype:
        return _THEIRS
    if (module, name) in _HOMES:
        return _HOMES[module, name]
    return _THEIRS if module == f"{_OWN}._C" else _THEIRS + module[len(_OWN):]


def ours(module):
    return _OWN + module[len(_THEIRS):] if module.split(".")[0] == _THEIRS else module


def find(lookup, module, name):
    """The object that a name in a file stands for; lookup(module, name) finds it."""
    if module == "torch.storage" and name == "_load_from_bytes":
        raise pickle.UnpicklingError("tensors that were pickled by pickle.dump in PyTorch can't be loaded: "
                                     "use torch.save")
    return lookup(ours(module), name)


class Pickler(pickle._Pickler):
    """Writes our names as PyTorch's. (Python's own pickler in C does not let names be changed.)"""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_global(self, obj, name=None):
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        module = pickle.whichmodule(obj, name)
        if theirs(module, name) == module or "." in name:
            return super().save_global(obj, name)
        self.write(pickle.GLOBAL + f"{theirs(module, name)}\n{name}\n".encode())
        self.memoize(obj)

    dispatch[types.FunctionType] = save_global
