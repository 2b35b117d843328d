"""observe.py finds every kind of difference: each test compiles a program wrongly, in one way."""
import contextlib
import io
import random
import warnings

import flambeau as torch
import pytest
from compilers import identity
from observe import compare
from program import load_code, make

SOURCE = """
import warnings
import logging
import flambeau as torch
from program import program

SCALE = 2.0
LOG = []


class Point:
    total = 0

    def __init__(self, x):
        self.x = x


def make_counter():
    count = 0

    def counter(x):
        nonlocal count
        count += 1
        return x + count

    return counter


def default(x, seen=[]):
    seen.append(1)
    return x


def scale(*_):
    global SCALE
    SCALE = 5.0


@program(lambda: (torch.ones(2, 3), [1]), lambda: (torch.zeros(4, 3), [2]), change=scale)
def pure(x, items):
    return x * 3 + items[0] * SCALE


@program(lambda: (torch.ones(2, 3), [1], {"a": 1, "b": 2}, Point(3)))
def structured(x, items, table, point):
    y = x.t() + 1
    return [y, y], (y[1:], x), {"k": x, "i": items}, point


@program(lambda: (torch.ones(2), [1], {"a": 1, "b": 2}, Point(3), make_counter(), iter([1, 2, 3])))
def changing(x, items, table, point, counter, it):
    global SCALE
    x.add_(1)
    items.append(2)
    table["a"] = table.pop("a")
    point.x = 4
    Point.total += 1
    SCALE += 1
    LOG.append("called")
    default(x)
    next(it)
    return counter(x)


@program(lambda: (torch.ones(2),))
def speaking(x):
    print("one")
    print("two")
    warnings.warn("old")
    logging.getLogger("x").warning("logged")
    return x


@program(lambda: (torch.ones(2), [1]))
def failing(x, items):
    items.append(2)
    try:
        {}["missing"]
    except KeyError as error:
        raise ValueError("no", 5) from error


@program(lambda: (torch.ones(2, requires_grad=True),))
def differentiable(x):
    return x * x + x.detach()


@program(lambda: (torch.ones(2),))
def drawing(x):
    return torch.rand(2) + x


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.weight


model = program(lambda: (torch.ones(2),), change=lambda m, x: setattr(m, "calls", 10))(Model)
"""


def world(name):
    module, marks = load_code("programs.test_observe", __file__, compile(SOURCE, __file__, "exec"))
    return make(module, next(mark for mark in marks if mark[0].__name__ == name))


def differences(name, wrong):
    return compare(world(name), world(name), wrong)


def on_result(change):
    return lambda f: lambda *args: change(f(*args), *args)


def on_arguments(change):
    def wrong(f):
        def call(*args):
            result = f(*args)
            change(f, *args)
            return result

        return call

    return wrong


def cached(f):
    """Remembers its first result, whatever comes."""
    results = []
    return lambda *args: results[0] if results else results.append(f(*args)) or results[0]


@pytest.mark.parametrize(
    "name", ["pure", "structured", "changing", "speaking", "failing", "differentiable", "drawing", "Model"]
)
def test_nothing_differs_without_a_compiler(name):
    assert differences(name, identity) == []
    assert differences(name, lambda f: lambda *args: f(*args)) == []


# Results --------------------------------------------------------------------------------------------------
RESULTS = {
    "the last bit": ("pure", lambda y, *_: y * (1 + 2**-23), "result.values"),
    "sign of zero": ("pure", lambda y, *_: y * 0 * -1 if y.shape[0] == 2 else y, "result.values"),
    "dtype": ("pure", lambda y, *_: y.double(), "result.dtype"),
    "shape": ("pure", lambda y, *_: y[None], "result.dtype, shape"),
    "strides": ("pure", lambda y, *_: y.t().contiguous().t(), "stride"),
    "offset": ("pure", lambda y, *_: torch.cat([y, y])[2:], "offset"),
    "kind": ("pure", lambda y, *_: y.tolist(), "result"),
    "requires_grad": ("pure", lambda y, *_: y.requires_grad_(), "requires_grad"),
    "list or tuple": ("structured", lambda r, *_: (tuple(r[0]), *r[1:]), "result[0]"),
    "length": ("structured", lambda r, *_: (r[0][:1], *r[1:]), "result[0]"),
    "identity of two results": (
        "structured",
        lambda r, *_: ([r[0][0], r[0][0].clone()], *r[1:]),
        "result[0][1]",
    ),
    "memory of two results": (
        "structured",
        lambda r, *_: (r[0], (r[0][0].clone()[1:], r[1][1]), *r[2:]),
        "result[1][0].memory",
    ),
    "argument as result": (
        "structured",
        lambda r, x, *_: (*r[:2], {"k": x.clone(), "i": r[2]["i"]}, r[3]),
        "result[2]['k']",
    ),
    "list of the arguments": (
        "structured",
        lambda r, *_: (*r[:2], {"k": r[2]["k"], "i": list(r[2]["i"])}, r[3]),
        "result[2]['i']",
    ),
    "order of keys": (
        "structured",
        lambda r, *_: (*r[:2], {"i": r[2]["i"], "k": r[2]["k"]}, r[3]),
        "result[2][0]",
    ),
    "object": ("structured", lambda r, *_: (*r[:3], type(r[3])(3)), "result[3]"),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_result(kind):
    name, change, where = RESULTS[kind]
    assert any(where in text for text in differences(name, on_result(change)))


# Arguments and the world ----------------------------------------------------------------------------------
def undo_cell(f, *args):
    args[4].__closure__[0].cell_contents = 0


def undo_global(f, *args):
    f.__globals__["SCALE"] = 2.0


def undo_default(f, *args):
    f.__globals__["default"].__defaults__[0].clear()


def reorder(f, x, items, table, *_):
    table["b"] = table.pop("b")


def replace_attribute(f, x, items, *_):
    f.__globals__["LOG"] = list(f.__globals__["LOG"])


ARGUMENTS = {
    "tensor": (lambda f, x, *_: x.sub_(1), "args[0].values"),
    "list": (lambda f, x, items, *_: items.pop(), "args[1]"),
    "order of a dict": (reorder, "args[2]"),
    "attribute": (lambda f, x, i, t, point, *_: setattr(point, "x", 3), "args[3].x"),
    "new attribute": (lambda f, x, i, t, point, *_: setattr(point, "y", 3), "args[3].y"),
    "class attribute": (lambda f, x, i, t, point, *_: setattr(type(point), "total", 0), "total"),
    "closure": (undo_cell, "count"),
    "global": (undo_global, "SCALE"),
    "identity of a global": (replace_attribute, "global LOG: list #"),
    "default": (undo_default, "__defaults__"),
    "iterator": (lambda f, *args: next(args[5]), "args[5]"),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_what_a_call_changes(kind):
    change, where = ARGUMENTS[kind]
    assert any(where in text for text in differences("changing", on_arguments(change)))


def test_changes_on_copies_do_not_count():
    def on_copies(f):
        return lambda x, items, *rest: f(x.clone(), list(items), *rest)

    assert any("args[0].values" in text for text in differences("changing", on_copies))


def test_attribute_of_a_module():
    def forgets(model):
        def call(x):
            result = model(x)
            model.calls = 1
            return result

        return call

    assert any("target.calls" in text for text in differences("Model", forgets))


# Output, modes, random numbers ----------------------------------------------------------------------------
def silent(f):
    def call(*args):
        with contextlib.redirect_stdout(io.StringIO()):
            return f(*args)

    return call


def without_warnings(f):
    def call(*args):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f(*args)

    return call


@pytest.mark.parametrize(
    "wrong, where",
    [
        (silent, "printed"),
        (without_warnings, "warned"),
        (on_result(lambda y, *_: print("more") or y), "printed"),
    ],
)
def test_output(wrong, where):
    assert any(where in text for text in differences("speaking", wrong))


def test_log():
    def unlogged(f):
        def call(*args):
            import logging

            logging.disable()
            try:
                return f(*args)
            finally:
                logging.disable(logging.NOTSET)

        return call

    assert any("logged" in text for text in differences("speaking", unlogged))


@pytest.mark.parametrize(
    "wrong, where",
    [
        (on_arguments(lambda *_: torch.rand(1)), "random_state[0]"),
        (on_arguments(lambda *_: random.random()), "random_state[1]"),
        (on_arguments(lambda *_: torch.set_grad_enabled(False)), "modes"),
        (on_arguments(lambda *_: torch.set_default_dtype(torch.float64)), "modes"),
    ],
)
def test_state_of_the_library(wrong, where):
    assert any(where in text for text in differences("drawing", wrong))


def test_other_random_numbers():
    assert any(
        "result.values" in text for text in differences("drawing", lambda f: lambda x: torch.rand(3)[1:] + x)
    )


# Exceptions -----------------------------------------------------------------------------------------------
def raising(make_error):
    def wrong(f):
        def call(*args):
            try:
                return f(*args)
            except ValueError as error:
                changed = make_error(error)
            if changed is not None:
                raise changed

        return call

    return wrong


def without(error, **attributes):
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


@pytest.mark.parametrize(
    "make_error, where",
    [
        (lambda error: None, "error"),
        (lambda error: TypeError(*error.args).with_traceback(error.__traceback__), "error"),
        (lambda error: without(error, args=("no", 6)), "error.args[1]"),
        (lambda error: without(error, __cause__=None), "error.__cause__"),
        (lambda error: without(error, __context__=None), "error.__context__"),
        (lambda error: error.with_traceback(None), "error.lines"),
    ],
)
def test_exceptions(make_error, where):
    found = differences("failing", raising(make_error))
    assert any(where in text for text in found), found


def test_exception_instead_of_a_result():
    def refuse(*args):
        raise RuntimeError("refused")

    assert any("error" in text for text in differences("pure", lambda f: refuse))


# Gradients and later calls --------------------------------------------------------------------------------
def test_gradients():
    assert any(
        "gradients" in text and "grad" in text
        for text in differences("differentiable", lambda f: lambda x: (x * x).detach() + x)
    )


def test_result_of_the_first_call():
    assert any(text.startswith(("second call", "call with")) for text in differences("pure", cached))


def test_stale_argument():
    def stale(f):
        kept = []
        return lambda x, items: f(x, (kept or kept.append(items) or kept)[0])

    assert any("new arguments 1" in text for text in differences("pure", stale))


def test_stale_global():
    def stale(f):
        return lambda x, items: x * 3 + items[0] * 2.0

    assert any("change 0" in text for text in differences("pure", stale))


def test_buffer_used_again():
    def reuses(f):
        buffers = {}

        def call(x, items):
            y = f(x, items)
            return buffers.setdefault(y.shape, y).copy_(y)

        return call

    assert differences("pure", reuses)
