"""Context managers as decorators."""
import contextlib

import pytest

from flambeau import _utils
from flambeau.utils._contextlib import (_DecoratorContextManager, _NoParamDecoratorContextManager,
                                        context_decorator)

depth = 0


class Deeper(_DecoratorContextManager):
    def __init__(self, by):
        self.by = by

    def __enter__(self):
        global depth
        depth += self.by

    def __exit__(self, kind, error, trace):
        global depth
        depth -= self.by

    def clone(self):
        return type(self)(self.by)


class One(_NoParamDecoratorContextManager):
    def __enter__(self):
        global depth
        depth += 1

    def __exit__(self, kind, error, trace):
        global depth
        depth -= 1


def test_functions_and_generators():
    @Deeper(2)
    def now(n=0):
        """As documented."""
        return depth if n == 0 else now(n - 1)

    @Deeper(3)
    def numbers():
        yield depth
        yield depth

    assert now() == 2 and now(2) == 6 and now.__doc__ == "As documented." and depth == 0
    seen = []
    for inside in numbers():
        seen.append((inside, depth))
    assert seen == [(3, 0), (3, 0)]
    with Deeper(5):
        assert depth == 5


def test_without_parentheses():
    @One
    def bare():
        return depth

    @One()
    def called():
        return depth

    assert (bare(), called(), depth) == (1, 1, 0)
    with One():
        assert depth == 1


def test_context_decorator():
    @contextlib.contextmanager
    def deeper():
        with Deeper(4):
            yield

    for scope in (deeper, Deeper(4).clone):
        function = context_decorator(scope, lambda x: (x, depth))
        assert function(1) == function(1) == (1, 4) and depth == 0
    with pytest.raises(ValueError, match="context manager"):
        context_decorator(Deeper(1), lambda: None)
    with pytest.raises(RuntimeError, match="methods"):
        context_decorator(deeper, One)


def test_exceptions_of_other_threads():
    try:
        {}["missing"]
    except KeyError:
        wrapped = _utils.ExceptionWrapper(where="in thread 3")
    with pytest.raises(KeyError, match="Caught KeyError in thread 3"):
        wrapped.reraise()
    assert repr(_utils.KeyErrorMessage("a\nb")) == "a\nb"
