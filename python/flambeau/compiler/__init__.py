"""Around compile(): what it may do, and in which state it is."""
import contextlib
import functools

from .. import _C
from ..compile_function import compile

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling",
           "is_dynamo_compiling", "is_exporting", "list_backends", "nested_compile_region", "reset", "set_stance",
           "substitute_in_graph", "wrap_numpy"]

_STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile",
            "aot_eager_then_compile")
_stance = "default"


def reset():
    """Forgets what was compiled: compiled functions capture anew at their next call."""
    forget = getattr(_C, "_reset_compiled", None)
    if forget is not None:
        forget()


def allow_in_graph(fn):
    """fn itself: every function may be in a graph."""
    return fn


def assume_constant_result(fn):
    """fn itself."""
    return fn


def disable(fn=None, recursive=True, *, reason=None):
    """A function that is never captured. Also a decorator."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if not callable(fn):
        raise TypeError(f"disable(): expected a function, got {type(fn).__name__}")
    return fn


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False):
    """A decorator that gives its function back."""
    return lambda fn: fn


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
    """Whether the program is being captured now."""
    capturing = getattr(_C, "_is_capturing", None)
    return capturing() if capturing is not None else False


is_dynamo_compiling = is_compiling


def is_exporting():
    return False


def list_backends(exclude_tags=("debug", "experimental")):
    """Names for compile(backend=...)."""
    return list(_C.list_backends())


def cudagraph_mark_step_begin():
    """Nothing to mark on the CPU."""


class set_stance(contextlib.ContextDecorator):
    """How compiled functions behave from now on, or within a scope: "force_eager" runs them as they were written."""

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}': expected one of {', '.join(_STANCES)}")
        global _stance
        self._before, self._stance = _stance, stance
        _stance = stance

    def __enter__(self):
        global _stance
        _stance = self._stance
        return self

    def __exit__(self, *error):
        global _stance
        _stance = self._before
        return False


def nested_compile_region(fn=None, **options):
    return fn if fn is not None else (lambda f: f)


def _keep_none(guard_entries):
    return [False] * len(guard_entries)


skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_all_nn_modules_unsafe = _keep_none
keep_tensor_guards_unsafe = skip_guard_on_globals_unsafe = skip_all_guards_unsafe = _keep_none


def save_cache_artifacts():
    """None: kernels are kept in the cache on disk already."""


def load_cache_artifacts(serialized_artifacts):
    """None."""


def set_enable_guard_collectives(enabled):
    return False
