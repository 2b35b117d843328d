"""TorchScript, as far as programs touch it that also run without: decorators do nothing, script and trace return what
they were given. Use flambeau.compile() to compile."""
import contextlib
from typing import Final, get_origin

from . import annotations

__all__ = ["Attribute", "CompilationUnit", "Error", "Final", "ScriptFunction", "ScriptModule", "annotate", "export", "fork",
           "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load", "optimize_for_inference",
           "save", "script", "script_method", "trace", "trace_module", "unused", "wait"]

_isinstance = isinstance


def is_scripting():
    return False


def is_tracing():
    return False


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """obj itself."""
    return obj


def trace(func=None, example_inputs=None, *args, **kwargs):
    """func itself: it is not recorded, and branches on values go on being taken."""
    return func


def trace_module(mod, inputs, *args, **kwargs):
    return mod


def script_method(fn):
    return fn


def script_if_tracing(fn):
    return fn


def _script_if_tracing(fn):
    return fn


def export(fn):
    return fn


def unused(fn):
    return fn


def ignore(drop=False, **kwargs):
    """A decorator, with and without arguments."""
    return drop if callable(drop) else (lambda fn: fn)


def interface(obj):
    return obj


def _overload(fn):
    return fn


_overload_method = _overload


def annotate(the_type, the_value):
    return the_value


def isinstance(obj, target_type):
    """Whether obj is of a type, by its container for types such as List[int]."""
    return _isinstance(obj, get_origin(target_type) or target_type)


class Attribute:
    def __init__(self, value, type):
        self.value, self.type = value, type


def freeze(mod, *args, **kwargs):
    return mod.eval()


def optimize_for_inference(mod, *args, **kwargs):
    return mod.eval()


def run_frozen_optimizations(mod, *args, **kwargs):
    pass


def _refuse(*args, **kwargs):
    raise RuntimeError("Flambeau does not run TorchScript: save a state_dict, or use flambeau.export")


load = save = jit_module_from_flatbuffer = _refuse


class ScriptModule:
    """No object is one."""

    def __init__(self, *args, **kwargs):
        _refuse()


class RecursiveScriptModule(ScriptModule):
    pass


class ScriptFunction(ScriptModule):
    pass


class CompilationUnit(ScriptModule):
    pass


class Error(RuntimeError):
    pass


class Future:
    """The result of fork()."""

    def __init__(self, value):
        self._value = value

    def wait(self):
        return self._value


def fork(func, *args, **kwargs):
    """Runs func at once."""
    return Future(func(*args, **kwargs))


def wait(future):
    return future.wait()


@contextlib.contextmanager
def optimized_execution(should_optimize):
    yield


@contextlib.contextmanager
def fuser(name):
    yield


def set_fusion_strategy(strategy):
    return []


def enable_onednn_fusion(enabled):
    pass


def onednn_fusion_enabled():
    return False


def _hide_source_ranges():
    return contextlib.nullcontext()




class strict_fusion(contextlib.nullcontext):
    pass
