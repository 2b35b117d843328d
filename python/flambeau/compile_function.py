"""compile(): a program captured as it runs, differentiated ahead of time and run as machine code."""
import copyreg
import functools
import warnings
import weakref

from . import _C

# What was compiled and still exists.
_compiled = weakref.WeakSet()
default_backend = "inductor"
_Captured = getattr(_C, "CapturedFunction", ())
if _Captured:  # copied and pickled as a function is: the same object, found by its name
    copyreg.pickle(_Captured, lambda f: getattr(f, "__qualname__", "function"))


def trace(function, **options):
    """The compiled form of a function of tensors alone, which is captured by running it once on symbolic
    tensors: what it reads besides its arguments is as it was then. For code of this package.
    """
    return _C._compile(function, **options)


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, name=None,
            disable=False, recompile_limit=None, isolate_recompiles=False, dynamic_shapes=None):
    """What does the same as a function, method or module, and runs faster after its first call.

    Its bytecode is captured: what it reads of the world is checked before each later call, and captured anew
    when it has changed. What can't be captured runs as ever, between compiled parts.

    fullgraph: raises an error where there would be several parts.
    dynamic: True: sizes are symbols at once; False: never; None: those that have changed.
    backend: "inductor" or "native": machine code; "aot_eager", "interpreter", "eager": for comparison. Or a
        function backend(graph_module, example_inputs) that gives a function of such inputs: for each part
        that is captured it gets a torch.fx.GraphModule of the program's calls, parameters among the inputs.
        None: compiler.get_default_backend().
    mode: None or "default"; "reduce-overhead", "max-autotune": on CUDA devices what was compiled is
        recorded as CUDA graphs (docs/cuda.md); "max-autotune-no-cudagraphs".
    options: of Inductor; {"triton.cudagraphs": True} is the mode "reduce-overhead", others have no effect.
        name, isolate_recompiles: neither.
    disable: gives the model itself.
    recompile_limit: captures of one place in the program before it runs as it is; None: 8.
    """
    backend = default_backend if backend is None else backend
    if dynamic_shapes is not None:
        raise NotImplementedError("compile(dynamic_shapes=...) is not supported: dynamic=True makes all "
                                  "sizes symbols, torch._dynamo.mark_dynamic() some")
    given = {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend, "mode": mode, "options": options,
             "disable": disable, "recompile_limit": recompile_limit}
    if model is None:
        return functools.partial(compile, **given)
    for name, kind in (("dynamic", bool), ("mode", str), ("options", dict), ("recompile_limit", int)):
        if not isinstance(given[name], (kind, type(None))):
            raise TypeError(f"compile(): expected {name} to be of type {kind.__name__} or None, got "
                            f"{given[name]!r}")
    if mode is not None and options is not None:
        raise RuntimeError("compile(): either mode or options can be given, not both")
    if not isinstance(backend, str) and not callable(backend):
        raise TypeError("compile(): expected backend to be a name or a function, got "
                        f"{type(backend).__name__}")
    if not callable(model):
        raise TypeError(f"compile(): expected a function, method or module, got {type(model).__name__}")
    if disable:
        return model
    if not _C._has_capture and backend != "eager":
        warnings.warn("this version of Python has no capture of bytecode: compiled functions run eagerly; "
                      "CPython 3.11, 3.12 and 3.13 have it", stacklevel=2)
    if is_module(model):
        from ._dynamo.eval_frame import optimized

        return optimized(model, given)
    if isinstance(model, _Captured):
        model = model.__wrapped__
    compiled = captured(model, given)
    return compiled if compiled is model else functools.update_wrapper(compiled, model)


def is_module(value):
    from .nn import Module

    return isinstance(value, Module)


def captured(function, given):
    """The function, captured with the options of compile(); itself where there is no capture."""
    if not _C._has_capture:
        return function
    from ._dynamo.backends import registered

    backend = given["backend"]
    if isinstance(backend, str):
        backend = registered.get(backend, "native" if backend == "inductor" else backend)
    if not isinstance(backend, str):
        from ._dynamo import recorder  # noqa: F401  the capture finds it loaded
    mode = given["mode"] or "default"
    if (given["options"] or {}).get("triton.cudagraphs"):
        mode = "reduce-overhead"
    limit = 8 if given["recompile_limit"] is None else given["recompile_limit"]
    made = _C._capture(function, backend=backend, dynamic=given["dynamic"],
                       fullgraph=bool(given["fullgraph"]), mode=mode,
                       recompile_limit=limit, name=getattr(function, "__name__", "function"))
    _compiled.add(made)
    return made


def reset():
    """Drops everything that was captured: each compiled function captures anew at its next call."""
    for function in list(_compiled):
        function.reset()
