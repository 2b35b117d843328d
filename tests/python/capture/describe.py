"""Everything that can be seen of a graph of objects, as lines of text: equal lines, equal objects.

Objects are numbered in the order in which they are met, and so is the memory of tensors: sharing, cycles and
aliases are in the lines too. No code of the described objects runs: no __eq__, no __getattr__, no property.
"""
import collections
import enum
import functools
import inspect
import logging
import types
import weakref

import flambeau as torch
import numpy
from flambeau import nn

VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
ATOMS = (type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented))
LIBRARY_ATOMS = (torch.dtype, torch.device)
UNNUMBERED = (tuple, frozenset, slice, types.MethodType, types.MappingProxyType, *VIEWS)
LIBRARY_FUNCTIONS = (types.BuiltinFunctionType, types.MethodDescriptorType, type(torch.exp),
                     type(torch.Tensor.sum))
SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
DICTS = (collections.OrderedDict, dict)
SEQUENCES = (list, tuple, collections.deque)
MODULE_INTERNALS = set(nn.Module().__dict__) - {"training", "_parameters", "_buffers", "_modules"}
CLASS_INTERNALS = set("""
    __dict__ __weakref__ __doc__ __module__ __slots__ __annotations__ __qualname__ __static_attributes__
    __firstlineno__ _abc_impl _member_map_ _value2member_map_ _hashable_values_ _unhashable_values_
    _ctx_class _backward_cls""".split())


def is_a(x, kind):
    """isinstance, which may run an object's own code, does not."""
    return issubclass(type(x), kind)


class Describer:
    """Describes the objects of one world; numbers and objects last from one describe() to the next."""

    def __init__(self, world):
        self.world = world  # the module whose functions and classes are looked into: others are only named
        self.numbers = {}   # id of an object -> number
        self.memory = {}    # address of a tensor's memory -> number
        self.kept = []      # what is numbered stays alive: ids and addresses are not used again
        self.met = set()
        self.lines = []

    def describe(self, **named):
        """Pairs (path, text); the values of a tensor are a list instead of text."""
        self.met, self.lines = set(), []
        for name, value in named.items():
            self.walk(name, value)
        return self.lines

    def line(self, path, text):
        self.lines.append((path, text))

    def number(self, path, x):
        """Writes an object's type and number; true at its first meeting in this description."""
        if id(x) not in self.numbers:
            self.numbers[id(x)] = len(self.numbers)
            self.kept.append(x)
        self.line(path, f"{type(x).__qualname__} #{self.numbers[id(x)]}")
        if id(x) in self.met:
            return False
        self.met.add(id(x))
        return True

    def walk(self, path, x):
        if is_a(x, enum.Enum):
            self.line(path, f"{type(x).__qualname__}.{x._name_}")
        elif type(x) in ATOMS or is_a(x, LIBRARY_ATOMS):
            self.line(path, f"{type(x).__name__} {x!r}")
        elif is_a(x, types.ModuleType):
            self.line(path, "module")
        elif is_a(x, type) and x.__module__ != self.world:
            self.line(path, f"class {x.__qualname__}")
        elif is_a(x, logging.Logger):
            self.line(path, f"logger {x.name}")
        elif is_a(x, LIBRARY_FUNCTIONS) or (is_a(x, types.FunctionType) and x.__module__ != self.world):
            self.line(path, f"function {x.__name__}")
        elif is_a(x, UNNUMBERED) and type(x).__dictoffset__ == 0:
            self.line(path, type(x).__qualname__)
            self.parts(path, x)
        elif self.number(path, x):
            self.parts(path, x)

    def parts(self, path, x):
        for kind, look in KINDS:
            if is_a(x, kind):
                look(self, path, x)
                break
        else:
            self.iterator(path, x)
        self.attributes(path, x)

    def items(self, path, values):
        for i, value in enumerate(values):
            self.walk(f"{path}[{i}]", value)

    def attributes(self, path, x):
        if is_a(x, type):
            return
        try:
            attributes = dict(object.__getattribute__(x, "__dict__"))
        except AttributeError:
            attributes = {}
        for name, value in attributes.items():
            if is_a(x, nn.Module) and name in MODULE_INTERNALS:
                if name.endswith("hooks") and value:  # their keys count the hooks of the whole process
                    self.items(f"{path}.{name}", value.values())
            elif name not in ("__wrapped__", "__objclass__", "_forward_hooks_always_called"):
                self.walk(f"{path}.{name}", value)
        for base in type(x).__mro__:
            for name, slot in base.__dict__.items():
                if base.__module__ == self.world and isinstance(slot, types.MemberDescriptorType):
                    try:
                        self.walk(f"{path}.{name}", slot.__get__(x))
                    except AttributeError:
                        self.line(f"{path}.{name}", "not set")

    # One function for each kind of object -----------------------------------------------------------------
    def tensor(self, path, x):
        facts = (str(x.dtype).split(".")[-1], tuple(x.shape), x.stride(), x.storage_offset())
        self.line(f"{path}.dtype, shape, stride, offset", repr(facts))
        self.line(f"{path}.requires_grad, is_leaf", repr((x.requires_grad, x.is_leaf)))
        self.line(f"{path}.is_inference", repr(x.is_inference()))
        if memory := x.untyped_storage().data_ptr():
            if memory not in self.memory:
                self.memory[memory] = len(self.memory)
                self.kept.append(x.untyped_storage())
            self.line(f"{path}.memory", f"#{self.memory[memory]}")
        self.line(f"{path}.values", x.detach().tolist())
        if x.is_leaf and x.requires_grad:
            self.walk(f"{path}.grad", x.grad)

    def array(self, path, x):
        self.line(path, f"{x.dtype} {x.shape} {x.strides}")
        self.line(f"{path}.values", x.tolist())

    def dictionary(self, path, x):
        order = next(kind for kind in DICTS if is_a(x, kind))
        for i, (key, value) in enumerate(order.items(x)):
            if type(key) is str:
                self.line(f"{path}[{i}]", f"key {key!r}")
            else:
                self.walk(f"{path}.key({i})", key)
            self.walk(f"{path}[{key!r}]" if type(key) in (str, int) else f"{path}[{i}]", value)
        if is_a(x, collections.defaultdict):
            self.walk(f"{path}.default_factory", x.default_factory)

    def sequence(self, path, x):
        kind = next(kind for kind in SEQUENCES if is_a(x, kind))
        self.items(path, kind.__iter__(x))
        if kind is collections.deque:
            self.line(f"{path}.maxlen", repr(x.maxlen))

    def set_of_things(self, path, x):
        atoms = sorted(repr(item) for item in x if type(item) in ATOMS)
        self.line(path, f"{len(x)} items {atoms}")
        objects = [item for item in x if type(item) not in ATOMS]  # only those met before have an order
        self.items(path, sorted(objects, key=lambda item: self.numbers.get(id(item), len(self.numbers))))

    def function(self, path, x):
        if x.__globals__.get("__name__") != self.world:  # made by a decorator of some library
            return self.walk(f"{path}.__wrapped__", x.__dict__.get("__wrapped__"))
        self.line(path, f"def {x.__qualname__}, line {x.__code__.co_firstlineno}")
        self.walk(f"{path}.__defaults__", x.__defaults__)
        self.walk(f"{path}.__kwdefaults__", x.__kwdefaults__)
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or ()):
            self.cell(f"{path}.{name}", cell)
        for name in global_names(x.__code__):
            if name in x.__globals__:
                self.walk(f"global {name}", x.__globals__[name])

    def cell(self, path, x):
        try:
            self.walk(path, x.cell_contents)
        except ValueError:
            self.line(path, "empty cell")

    def class_of_program(self, path, x):
        self.line(path, f"class {x.__qualname__} of {[base.__qualname__ for base in x.__bases__]}")
        for name, value in x.__dict__.items():
            if name not in CLASS_INTERNALS and not isinstance(value, SLOTS):
                self.walk(f"{path}.{name}", value)

    def exception(self, path, x):
        self.items(f"{path}.args", x.args)
        self.line(f"{path}.lines", repr(frames(x, self.world)))
        self.walk(f"{path}.__cause__", x.__cause__)
        self.walk(f"{path}.__context__", x.__context__)
        self.line(f"{path}.__suppress_context__", repr(x.__suppress_context__))

    def generator(self, path, x):
        self.line(path, f"{x.__qualname__} {inspect.getgeneratorstate(x)}")
        if x.gi_frame is not None:
            self.line(path, f"at line {x.gi_frame.f_lineno}")
            for name, value in x.gi_frame.f_locals.items():
                self.walk(f"{path}.{name}", value)

    def iterator(self, path, x):
        """What is left of an iterator of Python's own; other objects have only attributes."""
        if type(x).__module__ in ("builtins", "itertools") and type(x) is not object:
            try:
                state = x.__reduce__()
            except TypeError:
                return
            self.items(f"{path}.state", state[1:])


def parts_of(*names):
    """Looks at these attributes, which are C's own and run no code."""
    def look(describer, path, x):
        for name in names:
            describer.walk(f"{path}.{name}", getattr(x, name))

    return look


def number_or_text(describer, path, x):
    """An object of a class derived from one of these."""
    kind = next(kind for kind in (int, float, str) if is_a(x, kind))
    describer.line(path, kind.__repr__(x))


KINDS = [
    (torch.Tensor, Describer.tensor),
    (numpy.ndarray, Describer.array),
    (numpy.generic, lambda d, path, x: d.line(path, f"{x.dtype} {x.item()!r}")),
    (torch.Generator, lambda d, path, x: d.line(path, repr(x.get_state().tolist()))),
    (dict, Describer.dictionary),
    (SEQUENCES, Describer.sequence),
    ((set, frozenset), Describer.set_of_things),
    (bytearray, lambda d, path, x: d.line(path, repr(bytes(x)))),
    (types.FunctionType, Describer.function),
    (types.CellType, Describer.cell),
    (types.MethodType, parts_of("__func__", "__self__")),
    ((staticmethod, classmethod), parts_of("__func__")),
    (property, parts_of("fget", "fset", "fdel")),
    (functools.partial, parts_of("func", "args", "keywords")),
    (slice, parts_of("start", "stop", "step")),
    (type, Describer.class_of_program),
    (BaseException, Describer.exception),
    (types.GeneratorType, Describer.generator),
    (weakref.ref, lambda d, path, x: d.walk(f"{path}()", weakref.ref.__call__(x))),
    (VIEWS, lambda d, path, x: d.items(path, x)),
    (types.MappingProxyType, lambda d, path, x: d.dictionary(path, dict(x))),
    ((int, float, str), number_or_text),
]


@functools.lru_cache(maxsize=None)
def global_names(code):
    """The names that a function, and functions inside it, may look up among globals."""
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return list(dict.fromkeys([*code.co_names, *(name for part in inner for name in global_names(part))]))


def frames(error, world):
    """The functions and lines of a traceback that are the program's."""
    found, entry = [], error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_globals.get("__name__") == world:
            found.append((entry.tb_frame.f_code.co_name, entry.tb_lineno))
        entry = entry.tb_next
    return found
