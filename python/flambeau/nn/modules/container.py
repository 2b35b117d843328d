"""Modules that hold modules or parameters."""
import operator
from collections import OrderedDict, abc

import flambeau as fl
from flambeau.nn.modules.module import Module, _addindent
from flambeau.nn.parameter import Parameter

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _position(index, length):
    """An index from the front or the back, as a position."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class Container(Module):
    """The old name of a module with modules given by keyword."""

    def __init__(self, **kwargs):
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _ModuleSequence(Module):
    """What Sequential and ModuleList share: modules named "0", "1", ..."""

    def _key(self, index):
        """The name of the module at an index."""
        return list(self._modules)[_position(index, len(self))]

    def _replace_all(self, modules):
        self._modules = {str(k): module for k, module in enumerate(modules)}

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        for key in list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]:
            delattr(self, key)
        self._replace_all(self._modules.values())

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, module):
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Adds a module before an index."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._replace_all(modules)

    def pop(self, index):
        """Takes a module out and returns it."""
        module = self[index]
        del self[index]
        return module


class Sequential(_ModuleSequence):
    """Calls its modules one after the other, each with what the one before returned.

    Made from modules, or from one OrderedDict of names and modules.
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for k, module in enumerate(args):
                self.add_module(str(k), module)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"A Sequential can be added to a Sequential only, not to {type(other)}.")
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"A Sequential can be added to a Sequential only, not to {type(other)}.")
        return self.extend(other)

    def __mul__(self, times):
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return Sequential(*(module for _ in range(times) for module in self))

    __rmul__ = __mul__

    def __imul__(self, times):
        self._replace_all(list(self * times))
        return self

    def insert(self, index, module):
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        super().insert(index if index >= 0 else index + len(self), module)
        return self

    def extend(self, sequential):
        """Adds all modules of another one."""
        for module in list(sequential):
            self.append(module)
        return self

    def forward(self, input):
        for module in self:
            input = module(input)
        return input


class ModuleList(_ModuleSequence):
    """A list of modules whose parameters count."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return ModuleList([*self, *other])

    def extend(self, modules):
        """Adds all modules of an iterable."""
        if not isinstance(modules, abc.Iterable):
            raise TypeError(f"ModuleList.extend needs an iterable of modules, not {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self):
        """Runs of equal modules on one line."""
        texts = [repr(module) for module in self]
        lines, first = [], 0
        for k, text in enumerate(texts):
            if k + 1 < len(texts) and texts[k + 1] == text:
                continue
            count = k + 1 - first
            line = f"({first}): {text}" if count == 1 else f"({first}-{k}): {count} x {text}"
            lines.append(_addindent(line, 2))
            first = k + 1
        return self._get_name() + ("(\n  " + "\n  ".join(lines) + "\n)" if lines else "()")


class ModuleDict(Module):
    """A dictionary of modules whose parameters count, in the order of insertion."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        self._modules.clear()

    def pop(self, key):
        return self._modules.pop(key)

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    def update(self, modules):
        """Adds the pairs of a mapping or of an iterable."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _pairs(given, name):
    if not isinstance(given, abc.Iterable):
        raise TypeError(f"{name}.update needs a mapping or an iterable of pairs, not {type(given).__name__}")
    if isinstance(given, abc.Mapping) or hasattr(given, "items"):
        return list(given.items())
    pairs = []
    for k, pair in enumerate(given):
        if not isinstance(pair, abc.Iterable):
            raise TypeError(f"{name}.update: element {k} is no pair but {type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{name}.update: element {k} holds {len(pair)} values; a key and a value are "
                             "needed")
        pairs.append(tuple(pair))
    return pairs


def _as_parameter(value):
    """Tensors become parameters; anything else stays."""
    if isinstance(value, fl.Tensor) and not isinstance(value, Parameter):
        return Parameter(value, requires_grad=value.requires_grad)
    return value


def _described(name, value, type_of):
    """A line of repr()."""
    if not isinstance(value, fl.Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.size()))
    where = "" if value.device.type == "cpu" else f" ({value.device})"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({name}): {kind} containing: [{type_of(value)} of size {size}{where}]"


class ParameterList(Module):
    """A list whose tensors are parameters; other values may be in it too."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)([self[k] for k in range(*index.indices(len(self)))])
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index, value):
        setattr(self, str(_position(index, len(self))), _as_parameter(value))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter([self[k] for k in range(len(self))])

    def __iadd__(self, values):
        return self.extend(values)

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value):
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values):
        if not isinstance(values, abc.Iterable) or isinstance(values, fl.Tensor):
            raise TypeError("ParameterList.extend needs an iterable of parameters, not "
                            f"{type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join(_described(k, value, lambda v: v.dtype) for k, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary whose tensors are parameters; other values may be in it too."""

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _name(key):
        if not isinstance(key, str):
            raise TypeError(f"The keys of a ParameterDict are strings; this one is '{type(key).__name__}'.")
        return key

    def __getitem__(self, key):
        return getattr(self, self._name(key))

    def __setitem__(self, key, value):
        self._keys[key] = None
        setattr(self, self._name(key), _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._name(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        for key in list(self):
            del self[key]

    def pop(self, key):
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        key = list(self._keys)[-1]
        return key, self.pop(key)

    def get(self, key, default=None):
        return self[key] if key in self else default

    @classmethod
    def fromkeys(cls, keys, default=None):
        return cls((key, default) for key in keys)

    def keys(self):
        return self._keys.keys()

    def items(self):
        return ((key, self[key]) for key in self._keys)

    def values(self):
        return (self[key] for key in self._keys)

    def copy(self):
        return ParameterDict(OrderedDict(self.items()))

    def update(self, parameters):
        for key, value in _pairs(parameters, "ParameterDict"):
            self[key] = value

    def __or__(self, other):
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other):
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other):
        self.update(other)
        return self

    def extra_repr(self):
        return "\n".join(_described(key, value, lambda v: v.type()) for key, value in self.items())

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterDict should not be called.")
