"""__torch_function__: classes and modes that answer calls in place of the library."""
import contextlib
import functools

from . import _C
from ._C import Tensor, _handle_torch_function, _has_torch_function

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions",
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function",
    "has_torch_function", "is_tensor_like", "is_tensor_method_or_property", "resolve_name",
    "wrap_torch_function",
]


def has_torch_function(relevant_args):
    """Whether one of the arguments answers calls itself, or a mode is on."""
    return _has_torch_function(tuple(relevant_args))


def has_torch_function_unary(argument):
    return _has_torch_function((argument,))


def has_torch_function_variadic(*arguments):
    return _has_torch_function(arguments)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Calls the __torch_function__ of the mode or argument that is to answer public_api(*args, **kwargs)."""
    return _handle_torch_function(public_api, tuple(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher):
    """Decorator: the function asks __torch_function__ first, of the arguments that dispatcher() gives."""

    def decorate(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def dispatched(function, name=None, method=False):
    """The function with the checks of an operator: all of its arguments are asked for __torch_function__."""
    return _C._dispatched(function, name or function.__name__, method)


def public_in(names):
    """A decorator for functions of the torch namespace: adds the name to `names`, a module's __all__."""
    def public(function):
        names.append(function.__name__)
        return dispatched(function)

    return public


def is_tensor_like(value):
    """Whether a value is a Tensor or answers calls as one."""
    return type(value) is Tensor or hasattr(value, "__torch_function__")


@functools.cache
def get_default_nowrap_functions():
    """Properties whose value keeps its class where a subclass reads them."""
    return {getattr(Tensor, name).__get__ for name in ("_base", "grad", "_grad") if hasattr(Tensor, name)}


def _convert(result, cls):
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [_convert(item, cls) for item in result]
        return type(result)(items) if not hasattr(result, "_fields") else type(result)(*items)
    return result


class _DisableSubclasses(contextlib.ContextDecorator):
    """Inside, classes are not asked; modes are."""

    def __enter__(self):
        self._before = _C._set_torch_function_subclasses_off(True)

    def __exit__(self, *error):
        _C._set_torch_function_subclasses_off(self._before)


class _DisableAll(contextlib.ContextDecorator):
    """Inside, neither classes nor modes are asked."""

    def __enter__(self):
        self._before = _C._set_torch_function_all_off(True)

    def __exit__(self, *error):
        _C._set_torch_function_all_off(self._before)


# PyTorch has these in its compiled module.
_C.DisableTorchFunctionSubclass, _C.DisableTorchFunction = _DisableSubclasses, _DisableAll


def default_torch_function(cls, func, types, args=(), kwargs=None):
    """What Tensor.__torch_function__ does: the call itself, its tensors as `cls`."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with _DisableSubclasses():
        result = func(*args, **(kwargs or {}))
    return result if func in get_default_nowrap_functions() else _convert(result, cls)


class TorchFunctionMode:
    """While it is entered, calls of the library go to its __torch_function__(func, types, args, kwargs)."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, *error):
        _C._pop_torch_function_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_function_mode():
    modes = _C._torch_function_modes()
    return modes[-1] if modes else None


def _get_current_function_mode_stack():
    return _C._torch_function_modes()


@contextlib.contextmanager
def enable_reentrant_dispatch():
    yield


@functools.cache
def get_overridable_functions():
    """The functions that ask __torch_function__, by the module or class that holds them."""
    import flambeau

    spaces = [flambeau, flambeau.nn.functional, Tensor]
    return {space: [f for f in vars(space).values() if isinstance(f, _C._Operator)] for space in spaces}


def get_ignored_functions():
    """Functions that never ask."""
    return set()


def get_testing_overrides():
    """For every overridable function a function of the same arguments that returns -1."""
    return {f: (lambda *args, **kwargs: -1)
            for functions in get_overridable_functions().values() for f in functions}


def is_tensor_method_or_property(func):
    """Whether a function that a __torch_function__ got belongs to class Tensor."""
    name = getattr(func, "__name__", None)
    return name == "__get__" or getattr(Tensor, name or "", None) is func


def resolve_name(func):
    """The name that a user finds a function under: "torch.add", "torch.Tensor.add"."""
    for space, functions in get_overridable_functions().items():
        if any(f is func for f in functions):
            where = "torch.Tensor" if space is Tensor else space.__name__.replace("flambeau", "torch", 1)
            return f"{where}.{func.__name__}"
    return None
