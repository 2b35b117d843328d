"""Scopes in which operators are recorded, or not: context managers that are decorators too."""
from ._C import _set_grad_enabled, _set_inference


class _Scope:
    def __call__(self, function):
        def inside(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        inside.__name__, inside.__doc__, inside.__wrapped__ = function.__name__, function.__doc__, function
        return inside

    def _again(self):
        """A scope of this kind, so that a decorated function may call itself."""
        return type(self)()


class no_grad(_Scope):
    """Nothing is recorded inside."""

    _mode = False

    def __new__(cls, function=None):
        scope = super().__new__(cls)
        return scope if function is None else _Scope.__call__(scope, function)

    def __enter__(self):
        self._before = _set_grad_enabled(self._mode)

    def __exit__(self, *error):
        _set_grad_enabled(self._before)


class enable_grad(no_grad):
    """Operators are recorded inside, within no_grad too."""

    _mode = True


class set_grad_enabled(_Scope):
    """Sets the mode at once; as a context manager, gives the earlier one back at the end."""

    def __init__(self, mode):
        self._mode = bool(mode)
        self._before = _set_grad_enabled(self._mode)

    def __enter__(self):
        _set_grad_enabled(self._mode)

    def __exit__(self, *error):
        _set_grad_enabled(self._before)

    def __call__(self, function):
        _set_grad_enabled(self._before)
        return super().__call__(function)

    def _again(self):
        return set_grad_enabled(self._mode)


class inference_mode(_Scope):
    """Tensors made inside carry no version and are never recorded."""

    def __init__(self, mode=True):
        self._mode = bool(mode)

    def __enter__(self):
        self._before = _set_inference(self._mode), _set_grad_enabled(not self._mode)

    def __exit__(self, *error):
        _set_inference(self._before[0])
        _set_grad_enabled(self._before[1])

    def _again(self):
        return inference_mode(self._mode)
