"""Scopes in which operators are recorded, or not: context managers that are decorators too."""
import functools

from .._C import _set_grad_enabled, _set_inference


def _is_generator(function):
    """Whether a call of the function makes a generator, whose code runs between the calls of next()."""
    code = getattr(function, "__code__", None)
    return bool(code and code.co_flags & 0x20)


def _wrap_generator(scope, function):
    """The scope is on while the generator runs, and off while its user does."""

    @functools.wraps(function)
    def generate(*args, **kwargs):
        generator = function(*args, **kwargs)
        try:
            with scope():
                value = generator.send(None)
            while True:
                try:
                    given = yield value
                except GeneratorExit:
                    with scope():
                        generator.close()
                    raise
                except BaseException as error:
                    with scope():
                        value = generator.throw(error)
                else:
                    with scope():
                        value = generator.send(given)
        except StopIteration as stop:
            return stop.value

    return generate


class _Scope:
    def __call__(self, function):
        if isinstance(function, type):
            return self._decorate_class(function)
        if _is_generator(function):
            return _wrap_generator(self._again, function)

        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return inside

    def _decorate_class(self, cls):
        cls.__init__ = self(cls.__init__)
        return cls

    def _again(self):
        """A scope of this kind, so that a decorated function may call itself."""
        return type(self)()

    clone = _again


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
        self.mode = bool(mode)
        self.prev = _set_grad_enabled(self.mode)

    def __enter__(self):
        _set_grad_enabled(self.mode)

    def __exit__(self, *error):
        _set_grad_enabled(self.prev)

    def __call__(self, function):
        _set_grad_enabled(self.prev)
        return super().__call__(function)

    def _again(self):
        return set_grad_enabled(self.mode)

    clone = _again

    def __str__(self):
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__


class inference_mode(_Scope):
    """Tensors made inside carry no version and are never recorded."""

    def __new__(cls, mode=True):
        scope = super().__new__(cls)
        if isinstance(mode, bool):
            return scope
        scope.__init__()
        return _Scope.__call__(scope, mode)

    def __init__(self, mode=True):
        self.mode = bool(mode)

    def __enter__(self):
        self._before = _set_inference(self.mode), _set_grad_enabled(not self.mode)

    def __exit__(self, *error):
        _set_inference(self._before[0])
        _set_grad_enabled(self._before[1])

    def _again(self):
        return inference_mode(self.mode)

    clone = _again


class set_multithreading_enabled(_Scope):
    """A backward pass runs on the thread that calls it, in either mode."""

    def __init__(self, mode):
        self.mode = bool(mode)

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass

    def _again(self):
        return set_multithreading_enabled(self.mode)


class _force_original_view_tracking(set_multithreading_enabled):
    """Views are tracked the same way in either mode."""
