"""Around compile(): what it may do, and in which state it is."""
import functools

from .. import _C, compile_function
from ..compile_function import compile, is_module, reset

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
           "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "nested_compile_region",
           "reset", "set_stance", "substitute_in_graph", "wrap_numpy"]

_SAME = "fn itself. Has no effect: compile() captures what fn does as it captures all else."


def _same(fn):
    return fn


_same.__doc__ = _SAME
allow_in_graph = assume_constant_result = _same


# run_plainly(fn, ...): fn's result; neither fn nor what it calls is captured. Without capture, nothing is.
run_plainly = getattr(_C, "_run_plainly", lambda fn, *args, **kwargs: fn(*args, **kwargs))
_set_enabled = getattr(_C, "_set_capture_enabled", lambda on: True)


def disable(fn=None, recursive=True, *, reason=None):
    """fn as a function or module that is never captured, nor what it calls, and that ends the graph of a
    caller that is. Of a class, the objects are made and called so. Also a decorator with arguments, which
    have no effect.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if not callable(fn):
        raise TypeError(f"disable(): expected a function, class or module, got {type(fn).__name__}")
    if isinstance(fn, type):
        for name in ("__init__", "__call__"):
            if any(name in vars(base) for base in fn.__mro__[:-1]):
                setattr(fn, name, disable(getattr(fn, name)))
        return fn
    if is_module(fn):
        from .._dynamo.eval_frame import optimized

        return optimized(fn, None)

    @functools.wraps(fn)
    def plain(*args, **kwargs):
        return run_plainly(fn, *args, **kwargs)

    return plain


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False):
    """A decorator that gives its function back. Has no effect: where original_fn can't be captured, it runs
    as ever between two graphs.
    """
    return _same


def wrap_numpy(fn):
    """fn, called with arrays in place of tensors; its arrays become tensors."""
    def convert(kind, change, value):
        if isinstance(value, (list, tuple)):
            return type(value)(convert(kind, change, v) for v in value)
        if isinstance(value, dict):
            return {k: convert(kind, change, v) for k, v in value.items()}
        return change(value) if isinstance(value, kind) else value

    @functools.wraps(fn)
    def on_tensors(*args, **kwargs):
        import numpy

        args, kwargs = (convert(_C.Tensor, lambda t: t.numpy(), v) for v in (args, kwargs))
        return convert((numpy.ndarray, numpy.generic), _C.tensor, fn(*args, **kwargs))

    return on_tensors


def is_compiling():
    """Whether the code that asks is being captured."""
    return _C._is_capturing()


is_dynamo_compiling = is_compiling


def is_exporting():
    """False: there is no export."""
    return False


def list_backends(exclude_tags=("debug", "experimental")):
    """Names for compile(backend=...), those left out that are registered with one of the tags."""
    from .._dynamo import backends

    return backends.list_backends(exclude_tags)


def get_default_backend():
    """The backend of compile() where it is given none."""
    return compile_function.default_backend


def set_default_backend(backend):
    """Sets the backend of compile() where it is given none; None: "inductor"."""
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError("set_default_backend(): expected a name, a function or None, got "
                        f"{type(backend).__name__}")
    compile_function.default_backend = "inductor" if backend is None else backend


def _keep_all_guards(guard_entries):
    """True for each. Has no effect: Inductor's option guard_filter_fn has none, and every guard is checked.
    """
    return [True] * len(guard_entries)


skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_all_nn_modules_unsafe = _keep_all_guards
skip_guard_on_globals_unsafe = skip_all_guards_unsafe = _keep_all_guards
keep_tensor_guards_unsafe = keep_portable_guards_unsafe = _keep_all_guards


def cudagraph_mark_step_begin():
    """Has no effect: outputs of CUDA graphs are not overwritten while they are held."""


class set_stance:
    """How compiled functions behave: "default"; "force_eager": they run as they were written. A function that
    sets it, a context and a decorator. Other stances raise NotImplementedError; skip_guard_eval_unsafe has
    no effect.
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in ("default", "force_eager") or force_backend is not None:
            raise NotImplementedError(
                "set_stance(): expected stance 'default' or 'force_eager' and no force_backend, got "
                f"{stance!r} and {force_backend!r}")
        self._stance = stance
        self._before = _set_enabled(stance == "default")

    def __enter__(self):
        _set_enabled(self._stance == "default")
        return self

    def __exit__(self, *error):
        _set_enabled(self._before)

    def __call__(self, function):
        _set_enabled(self._before)  # a decorator holds for the function's calls alone

        @functools.wraps(function)
        def staged(*args, **kwargs):
            with set_stance(self._stance):
                return function(*args, **kwargs)

        return staged


def nested_compile_region(fn=None, **options):
    return fn if fn is not None else _same


nested_compile_region.__doc__ = f"{_SAME} Also a decorator with arguments."


def save_cache_artifacts():
    """None: kernels are kept in the cache on disk already."""


def load_cache_artifacts(serialized_artifacts):
    raise NotImplementedError("load_cache_artifacts() is not supported: Flambeau can't read PyTorch's "
                              "artifacts; it keeps its own kernels on disk, in FLAMBEAU_CACHE_DIR")


def set_enable_guard_collectives(enabled):
    """False. Has no effect: no processes work together here."""
    return False
