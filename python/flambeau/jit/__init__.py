"""TorchScript, as far as programs touch it that also run without: decorators do nothing, script and trace
return what they were given. Use flambeau.compile() to compile.
"""
import contextlib
from typing import Final, get_origin

from ..futures import Future
from . import annotations

__all__ = ["Attribute", "CompilationUnit", "Error", "Final", "ScriptFunction", "ScriptModule", "annotate",
           "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance",
           "load", "optimize_for_inference", "save", "script", "script_method", "trace", "trace_module",
           "unused", "wait"]

_isinstance = isinstance


def is_scripting():
    return False


def is_tracing():
    return False


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """obj itself, which goes on running as Python."""
    return obj


def trace(func=None, example_inputs=None, *args, **kwargs):
    """func itself: it is not recorded, and branches on values go on being taken."""
    return func


def trace_module(mod, inputs, *args, **kwargs):
    """mod itself, as trace()."""
    return mod


def script_method(fn):
    """fn itself. Has no effect: there is no TorchScript that it could mark fn for."""
    return fn


script_if_tracing = _script_if_tracing = export = unused = interface = script_method
_overload = _overload_method = script_method


def ignore(drop=False, **kwargs):
    """A decorator, with and without arguments, that has no effect."""
    return drop if callable(drop) else (lambda fn: fn)


def annotate(the_type, the_value):
    return the_value


def isinstance(obj, target_type):
    """Whether obj is of a type, by its container for types such as List[int]."""
    return _isinstance(obj, get_origin(target_type) or target_type)


class Attribute:
    def __init__(self, value, type):
        self.value, self.type = value, type


def freeze(mod, *args, **kwargs):
    """mod.eval(): parameters stay parameters."""
    return mod.eval()


optimize_for_inference = freeze


def _no_effect(*args, **kwargs):
    """Has no effect: flambeau.compile() is what optimizes."""


run_frozen_optimizations = enable_onednn_fusion = _no_effect


def _refuse(*args, **kwargs):
    raise RuntimeError("Flambeau does not run TorchScript: save the state_dict() of a module, and load it "
                       "into one")


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


def fork(func, *args, **kwargs):
    """A Future of func(*args, **kwargs), which runs at once."""
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    return future.wait()


class strict_fusion(contextlib.nullcontext):
    """A scope that has no effect: flambeau.compile() is what optimizes."""

    def __init__(self, *args):
        super().__init__()


optimized_execution = fuser = _hide_source_ranges = strict_fusion


def set_fusion_strategy(strategy):
    """[], the strategy before. Has no effect: flambeau.compile() is what optimizes."""
    return []


def onednn_fusion_enabled():
    return False
