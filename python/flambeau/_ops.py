"""torch.ops: operators by namespace. torch.ops.aten.NAME are Flambeau's; others are made by torch.library."""
import os
import sys
import types

from . import _C
from ._C import Tensor

_defined = {}


class Operator:
    """An operator of one's own: a function, one for tensors without elements, a gradient."""

    def __init__(self, qualname, schema):
        self._qualname, self._qualified_op_name, self.schema = qualname, qualname, schema
        self.__name__ = qualname.split("::")[-1]
        self.function = self.fake = self.backward = self.setup_context = None
        self.composite = False  # made of differentiable operators: needs no gradient of its own

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._qualname.replace('::', '.')}')>"

    @property
    def default(self):
        return self

    def overloads(self):
        return ["default"]

    def name(self):
        return self._qualname

    def __call__(self, *args, **kwargs):
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        if self.fake is not None and any(t.device.type == "meta" for t in tensors):
            return self.fake(*args, **kwargs)
        if self.function is None:
            raise NotImplementedError(f"the operator {self._qualname} has no implementation: "
                                      "torch.library.impl gives it one")
        own_gradient = self.backward is not None and not self.composite and _C.is_grad_enabled()
        if own_gradient and any(t.requires_grad for t in tensors):
            from .library import _Differentiable

            return _Differentiable.apply(self, *args, *self._positional(len(args), kwargs))
        return self.function(*args, **kwargs)

    def _positional(self, given, kwargs):
        if not kwargs:
            return ()
        import inspect

        names = list(inspect.signature(self.function).parameters)[given:]
        defaults = {n: p.default for n, p in inspect.signature(self.function).parameters.items()}
        return tuple(kwargs.get(n, defaults[n]) for n in names)


def define(qualname, schema):
    """Makes an operator; one that is there already stays, with its function."""
    if "::" not in qualname:
        raise ValueError(f"expected a name with a namespace such as 'mine::{qualname}', got '{qualname}'")
    return _defined.setdefault(qualname.split(".")[0], Operator(qualname, schema))


def find(qualname, missing_ok=False):
    found = _defined.get(qualname.split(".")[0])
    if found is None and not missing_ok:
        raise RuntimeError(f"there is no operator {qualname}; torch.library.define makes one")
    return found


class _Packet:
    """An operator of the table. A call's arguments choose the overload, so each overload is the operator."""

    def __init__(self, name, function):
        self._function, self.__name__ = function, name
        self._qualified_op_name = f"aten::{name}"

    def __call__(self, *args, **kwargs):
        try:
            return self._function(*args, **kwargs)
        except TypeError as error:
            if not str(error).startswith(f"{self.__name__}()"):
                raise
            raise RuntimeError(f"the arguments fit no schema of aten::{self.__name__}: {error}") from None

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self._function

    def __repr__(self):
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def _packet(name):
    """An operator of the table, or a function that does what PyTorch has an operator for."""
    from . import _overloads

    where = _overloads if name in _overloads.__all__ else _C
    function = getattr(where, name, None) or getattr(Tensor, name, None)
    if function is None:
        import flambeau

        if name not in flambeau._HOME_OF:
            return None
        function = getattr(flambeau, name)
    return _Packet(name, function)


class _Namespace(types.ModuleType):
    def __init__(self, name):
        super().__init__(f"flambeau.ops.{name}")
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = _defined.get(f"{self._name}::{name}")
        if found is None and self._name in ("aten", "prims"):
            found = _packet(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        setattr(self, name, found)
        return found


class _Operators(types.ModuleType):
    """torch.ops."""

    loaded_libraries = set()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = _Namespace(name)
        setattr(self, name, namespace)
        return namespace

    def load_library(self, path):
        """Refuses; but of torchvision's own library Flambeau has the operators itself."""
        path = os.fspath(path)
        name = os.path.basename(path)
        if "torchvision" in path and name.startswith("_C"):
            from . import _torchvision

            return _torchvision.register()
        raise OSError(f"{path}: libraries of operators that were compiled for PyTorch do not run on Flambeau")

    def import_module(self, module):
        __import__(module)


ops = _Operators("flambeau.ops")
sys.modules["flambeau.ops"] = ops


class OpOverload:
    """The type of torch.ops.aten.NAME.default in PyTorch; no object is one."""


OpOverloadPacket = _Packet
