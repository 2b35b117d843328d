"""An unpickler that knows a list of classes and functions, and runs nothing else.

It is a stack machine over pickle's instructions (protocols 0 to 5; Lib/pickletools.py of Python explains
each). What it may find by name is in allowed(); what it may call is what it found so; what may have state set
is a tensor, an OrderedDict, or an object of a class that the user added.
"""
import io
import pickle
import struct
from collections import Counter, OrderedDict, defaultdict

from .. import _C, _utils, storage
from .._C import Tensor
from .globals import ours, theirs

UnpicklingError = pickle.UnpicklingError
_user = {}


def _full_name(value):
    return f"{value.__module__}.{value.__qualname__}"


def add_safe_globals(safe_globals):
    """What load(weights_only=True) may use from now on: classes, functions, pairs (value, "module.name")."""
    for entry in safe_globals:
        value, name = entry if isinstance(entry, tuple) else (entry, _full_name(entry))
        _user[name] = value


def get_safe_globals():
    """What was added."""
    return [value if _full_name(value) == name else (value, name) for name, value in _user.items()]


def clear_safe_globals():
    _user.clear()


def _encode(text, encoding):
    """How protocol 2 writes bytes."""
    if encoding != "latin1" or not isinstance(text, str):
        raise UnpicklingError(f"_codecs.encode is allowed for latin1 only, got {encoding!r}")
    return text.encode(encoding)


def allowed():
    """{"module.name": object}, in PyTorch's names."""
    names = {"collections.OrderedDict": OrderedDict, "collections.Counter": Counter,
             "collections.defaultdict": defaultdict, "_codecs.encode": _encode,
             **{f"{module}.{t.__name__}": t for module in ("builtins", "__builtin__")
                for t in (set, frozenset, bytearray, complex, list, dict, tuple, int, float, bool, str,
                          bytes, slice)}}
    for name in ("Size", "Tensor", "device"):
        names[f"torch.{name}"] = getattr(_C, name)
    names["torch._tensor.Tensor"] = Tensor
    names.update({str(v): v for v in vars(_C).values() if isinstance(v, _C.dtype)})
    for name, value in vars(storage).items():
        if name.endswith("Storage"):
            names[f"torch.{name}"] = names[f"torch.storage.{name}"] = value
    names.update({f"torch._utils.{name}": value for name, value in vars(_utils).items()
                  if name.startswith("_rebuild")})
    names["torch._tensor._rebuild_from_type_v2"] = _utils._rebuild_from_type_v2
    names["torch.serialization._get_layout"] = _layout
    return names


def _layout(name):
    from flambeau.serialization import _get_layout
    return _get_layout(name)


def _parameter_class(full):
    """Parameter or Buffer: nn is loaded for files that have some."""
    module, _, name = full.rpartition(".")
    if module not in ("torch.nn.parameter", "torch.nn") or name not in ("Parameter", "Buffer"):
        return None
    from ..nn import parameter

    return getattr(parameter, name)


def _names(module, name):
    """A name as it is in the file and as it is here."""
    return f"{module}.{name}", f"{ours(module)}.{name}", f"{theirs(module, name)}.{name}"


class _Mark:
    pass


class SafeUnpickler:
    """Reads one pickle of a file. persistent_load: what references of the pickle stand for."""

    def __init__(self, file, persistent_load=None):
        self._read, self._line = file.read, file.readline
        self._persistent_load = persistent_load
        self._known = allowed()
        self.unknown = None  # a list: names that are not known are noted there, and nothing is made

    def load(self):
        self._stack, self._memo = [], {}
        while True:
            code = self._bytes(1)
            step = _STEPS.get(code)
            if step is None:
                raise UnpicklingError(f"unsupported instruction {code!r} of pickle")
            if step is _stop:
                return self._stack.pop()
            try:
                step(self)
            except (IndexError, KeyError, ValueError, AttributeError, TypeError) as error:
                if isinstance(error, UnpicklingError):
                    raise
                raise UnpicklingError(f"the pickle is damaged: {type(error).__name__}: {error}") from error

    def _bytes(self, n):
        data = self._read(n)
        if len(data) < n:
            raise EOFError("the pickle ends too early: the file is damaged")
        return data

    def _number(self, form):
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _items(self):
        """What was put on the stack since the last mark."""
        at = len(self._stack) - 1
        while self._stack[at] is not _Mark:
            at -= 1
            if at < 0:
                raise UnpicklingError("a mark is missing")
        items = self._stack[at + 1:]
        del self._stack[at:]
        return items

    def find(self, module, name):
        for full in _names(module, name):
            if full in _user:
                return _user[full]
            if full in self._known:
                return self._known[full]
            if (parameter := _parameter_class(full)) is not None:
                return self._known.setdefault(full, parameter)
        if self.unknown is not None:
            self.unknown.append(f"{module}.{name}")
            return _nothing
        raise UnpicklingError(
            f"load(weights_only=True) refused {module}.{name}: this global is neither allowed by default nor "
            f"by you. If you trust it, allow it with `torch.serialization.add_safe_globals([{name}])` or, "
            f"for a while, with `torch.serialization.safe_globals([{name}])`. weights_only=False lets the "
            "file run any code: choose it only for a file whose source you trust.")

    def may_call(self, function):
        return function is _nothing or any(function is f for f in (*_user.values(), *self._known.values()))

    def call(self, function, args):
        if not self.may_call(function):
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {function!r:.100}")
        if self.unknown is not None and function not in (OrderedDict, set, Counter, defaultdict):
            return _nothing()
        return function(*args)

    def build(self, target, state):
        kind = type(target)
        if kind in (OrderedDict, defaultdict, Counter):
            target.__dict__.update(state)
        elif isinstance(target, Tensor) and (kind is Tensor or kind in self._known.values()):
            target.__setstate__(state)
        elif kind in _user.values():
            if hasattr(target, "__setstate__"):
                target.__setstate__(state)
            else:
                slots = state[1] if isinstance(state, tuple) and len(state) == 2 else None
                target.__dict__.update(state[0] or {} if slots is not None else state)
                for name, value in (slots or {}).items():
                    setattr(target, name, value)
        elif not isinstance(target, _nothing):
            raise UnpicklingError("load(weights_only=True) sets the state of tensors, parameters, "
                                  f"OrderedDicts and types from `add_safe_globals` only, not of {kind}")


class _nothing:
    """In place of what get_unsafe_globals_in_checkpoint() does not make."""

    def __init__(self, *args, **kwargs):
        pass


def load(file, persistent_load=None):
    """The object of one pickle. Raises pickle.UnpicklingError on a class or function that is not allowed."""
    return SafeUnpickler(file, persistent_load).load()


def unknown_globals(text):
    unpickler = SafeUnpickler(io.BytesIO(text), lambda saved: _nothing())
    unpickler.unknown = []
    unpickler.load()
    return sorted(set(unpickler.unknown))


# The instructions. Each function takes the machine.
_STEPS = {}


def _on(*codes):
    def register(function):
        for code in codes:
            _STEPS[code] = function
        return function

    return register


def _push(code, value):
    """An instruction that pushes value(machine)."""
    _STEPS[code] = lambda m: m._stack.append(value(m))


@_on(pickle.STOP)
def _stop(m):
    pass


_on(pickle.PROTO)(lambda m: m._bytes(1))
_on(pickle.FRAME)(lambda m: m._bytes(8))
_on(pickle.MARK)(lambda m: m._stack.append(_Mark))
_on(pickle.POP)(lambda m: m._stack.pop())
_on(pickle.POP_MARK)(lambda m: m._items())
_on(pickle.DUP)(lambda m: m._stack.append(m._stack[-1]))

_push(pickle.NONE, lambda m: None)
_push(pickle.NEWTRUE, lambda m: True)
_push(pickle.NEWFALSE, lambda m: False)
_push(pickle.INT, lambda m: _text_int(m._line()))
_push(pickle.BININT, lambda m: m._number("<i"))
_push(pickle.BININT1, lambda m: m._number("<B"))
_push(pickle.BININT2, lambda m: m._number("<H"))
_push(pickle.LONG1, lambda m: int.from_bytes(m._bytes(m._number("<B")), "little", signed=True))
_push(pickle.LONG4, lambda m: int.from_bytes(m._bytes(m._number("<I")), "little", signed=True))
_push(pickle.BINFLOAT, lambda m: m._number(">d"))
_push(pickle.BINUNICODE, lambda m: m._bytes(m._number("<I")).decode("utf-8", "surrogatepass"))
_push(pickle.SHORT_BINUNICODE, lambda m: m._bytes(m._number("<B")).decode("utf-8", "surrogatepass"))
_push(pickle.BINUNICODE8, lambda m: m._bytes(m._number("<Q")).decode("utf-8", "surrogatepass"))
_push(pickle.SHORT_BINSTRING, lambda m: m._bytes(m._number("<B")).decode("utf-8"))
_push(pickle.BINSTRING, lambda m: m._bytes(m._number("<I")).decode("utf-8"))
_push(pickle.SHORT_BINBYTES, lambda m: m._bytes(m._number("<B")))
_push(pickle.BINBYTES, lambda m: m._bytes(m._number("<I")))
_push(pickle.BINBYTES8, lambda m: m._bytes(m._number("<Q")))
_push(pickle.BYTEARRAY8, lambda m: bytearray(m._bytes(m._number("<Q"))))
_push(pickle.EMPTY_LIST, lambda m: [])
_push(pickle.EMPTY_TUPLE, lambda m: ())
_push(pickle.EMPTY_DICT, lambda m: {})
_push(pickle.EMPTY_SET, lambda m: set())
_push(pickle.LIST, lambda m: m._items())
_push(pickle.TUPLE, lambda m: tuple(m._items()))
_push(pickle.DICT, lambda m: _dict(m._items()))
_push(pickle.FROZENSET, lambda m: frozenset(m._items()))
_push(pickle.GET, lambda m: m._memo[int(m._line())])
_push(pickle.BINGET, lambda m: m._memo[m._number("<B")])
_push(pickle.LONG_BINGET, lambda m: m._memo[m._number("<I")])
_push(pickle.BINPERSID, lambda m: _persistent(m, m._stack.pop()))


def _text_int(line):
    line = line.strip()
    return {b"00": False, b"01": True}[line] if line in (b"00", b"01") else int(line)


def _dict(items):
    return dict(zip(items[::2], items[1::2]))


def _persistent(m, saved):
    if m._persistent_load is None:
        raise UnpicklingError("a reference to a storage where none can be")
    return m._persistent_load(saved)


_on(pickle.PUT)(lambda m: m._memo.__setitem__(int(m._line()), m._stack[-1]))
_on(pickle.BINPUT)(lambda m: m._memo.__setitem__(m._number("<B"), m._stack[-1]))
_on(pickle.LONG_BINPUT)(lambda m: m._memo.__setitem__(m._number("<I"), m._stack[-1]))
_on(pickle.MEMOIZE)(lambda m: m._memo.__setitem__(len(m._memo), m._stack[-1]))


def _last(n):
    def step(m):
        items = tuple(m._stack[-n:])
        if len(items) < n or _Mark in items:
            raise UnpicklingError("the stack is too short")
        m._stack[-n:] = [items]

    return step


for _code, _n in ((pickle.TUPLE1, 1), (pickle.TUPLE2, 2), (pickle.TUPLE3, 3)):
    _STEPS[_code] = _last(_n)


def _container(m, *kinds):
    if not isinstance(m._stack[-1], kinds):
        raise UnpicklingError(f"items for a container of type {type(m._stack[-1])}")
    return m._stack[-1]


@_on(pickle.APPEND)
def _append(m):
    value = m._stack.pop()
    _container(m, list).append(value)


@_on(pickle.APPENDS)
def _appends(m):
    items = m._items()
    _container(m, list).extend(items)


@_on(pickle.SETITEM)
def _set_item(m):
    value, key = m._stack.pop(), m._stack.pop()
    _container(m, dict, _nothing)
    if isinstance(m._stack[-1], dict):
        m._stack[-1][key] = value


@_on(pickle.SETITEMS)
def _set_items(m):
    items = m._items()
    target = _container(m, dict, _nothing)
    if isinstance(target, dict):
        for key, value in zip(items[::2], items[1::2]):
            target[key] = value


@_on(pickle.ADDITEMS)
def _add_items(m):
    items = m._items()
    _container(m, set).update(items)


@_on(pickle.GLOBAL)
def _global(m):
    module, name = m._line()[:-1].decode(), m._line()[:-1].decode()
    m._stack.append(m.find(module, name))


@_on(pickle.STACK_GLOBAL)
def _stack_global(m):
    name, module = m._stack.pop(), m._stack.pop()
    m._stack.append(m.find(module, name))


@_on(pickle.REDUCE)
def _reduce(m):
    args, function = m._stack.pop(), m._stack.pop()
    m._stack.append(m.call(function, args))


def _new(with_keywords):
    def step(m):
        kwargs = m._stack.pop() if with_keywords else {}
        args, cls = m._stack.pop(), m._stack.pop()
        if not m.may_call(cls) or not isinstance(cls, type):
            raise UnpicklingError(f"Trying to make an object of unrecognized class {cls!r:.100}")
        unknown = m.unknown is not None and cls not in (OrderedDict, set, Counter, defaultdict)
        m._stack.append(_nothing() if unknown else cls.__new__(cls, *args, **kwargs))

    return step


_STEPS[pickle.NEWOBJ], _STEPS[pickle.NEWOBJ_EX] = _new(False), _new(True)


@_on(pickle.BUILD)
def _build(m):
    state = m._stack.pop()
    m.build(m._stack[-1], state)
