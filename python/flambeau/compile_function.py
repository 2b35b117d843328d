"""compile(): a program captured as it runs, differentiated ahead of time and run as machine code."""
import functools
import warnings
import weakref

from . import _C

# What was compiled and still exists.
_compiled = weakref.WeakSet()


def trace(function, **options):
    """The compiled form of a function of tensors alone, which is captured by running it once on symbolic
    tensors: what it reads besides its arguments is as it was then. For code of this package.
    """
    return _C._compile(function, **options)


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None,
            disable=False, recompile_limit=8):
    """What does the same as a function, method or module, and runs faster after its first call.

    Its bytecode is captured: what it reads of the world is checked before each later call, and captured anew
    when it has changed. What can't be captured runs as ever, between compiled parts.

    fullgraph: raises an error where there would be several parts.
    dynamic: True: sizes are symbols at once; False: never; None: those that have changed.
    backend: "inductor" or "native": machine code; "aot_eager", "interpreter", "eager": for comparison.
    mode: None or "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs".
    disable: gives the model itself.
    recompile_limit: captures of one place in the program before it runs as it is.
    """
    given = {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend, "mode": mode, "options": options,
             "disable": disable, "recompile_limit": recompile_limit}
    if model is None:
        return functools.partial(compile, **given)
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same "
                           "time.")
    if not callable(model):
        raise TypeError(f"compile(): expected a function, method or module, got {type(model).__name__}")
    if disable:
        return model
    return _compile_module(model, given) if _is_module(model) else _compile_callable(model, given)


def _is_module(model):
    from .nn import Module

    return isinstance(model, Module)


def _captured(function, given):
    if not isinstance(given["backend"], str):
        raise NotImplementedError("compile(backend=...) takes a name: backends that are functions of torch.fx "
                                  f"graphs are not supported; there are {', '.join(_C.list_backends())}")
    backend = "native" if given["backend"] == "inductor" else given["backend"]
    if not _C._has_capture and backend != "eager":
        warnings.warn("this version of Python has no capture of bytecode: compiled functions run eagerly; "
                      "CPython 3.11, 3.12 and 3.13 have it", stacklevel=4)
        return function
    captured = _C._capture(function, backend=backend, dynamic=given["dynamic"], fullgraph=given["fullgraph"],
                           mode=given["mode"] or "default", recompile_limit=given["recompile_limit"],
                           name=getattr(function, "__name__", "function"))
    _compiled.add(captured)
    return captured


def reset():
    """Drops everything that was captured: each compiled function captures anew at its next call."""
    for captured in list(_compiled):
        captured.reset()


def _compile_callable(function, given):
    compiled = _captured(function, given)
    if compiled is not function:
        functools.update_wrapper(compiled, function)
    return compiled


def _compile_module(module, given):
    """An object of the module's class with the same attributes, whose calls are captured."""
    from ._dynamo.eval_frame import _rebuild

    return _rebuild(module, given)
