"""Python's own semantics, in kinds that compilers of Python got wrong."""
import collections
import contextlib
import traceback

import flambeau as torch
import pytest
from compilers import values
from flambeau import nn


def x2():
    return torch.tensor([1.0, 2.0])


# Names of outer functions ---------------------------------------------------------------------------------
def test_each_function_writes_another_name(compile_fn):
    a, b = 1, 2

    def run(x):
        def second():
            nonlocal b
            b = a * 10

        def first():
            nonlocal a
            a = 7
            second()

        first()
        return x + a + b

    assert values(compile_fn(run)(x2())) == [78, 79] and (a, b) == (7, 70)


def test_a_name_is_written_by_a_callee_of_a_callee(compile_fn):
    log, state = [], "start"

    def mark(text):
        nonlocal state
        log.append(state)
        state = text

    def run(x):
        mark("one")
        y = x * len(log)
        for text in ("two", "three"):
            mark(text)
            y = y + len(state)
        return y

    assert values(compile_fn(run)(x2())) == [9, 10]
    assert log == ["start", "one", "two"] and state == "three"


def test_a_name_is_seen_by_all_functions_that_share_it(compile_fn):
    total = 0

    def add(n):
        nonlocal total
        total += n
        return lambda: total

    def run(x):
        readers = [add(n) for n in (1, 2, 3)]
        return [x * reader() for reader in readers]

    compiled = compile_fn(run)
    assert values(compiled(x2())) == [[6, 12]] * 3
    total = 100
    assert values(compiled(x2())) == [[106, 212]] * 3


# Bodies of generators -------------------------------------------------------------------------------------
def test_a_generator_sees_the_mode_of_its_consumer(compile_fn):
    def twice(x):
        yield x * 2
        yield x * 2

    def run(x):
        with torch.no_grad():
            g = twice(x)
        first = next(g)
        with torch.no_grad():
            second = next(g)
        return first, second

    first, second = compile_fn(run)(x2().requires_grad_())
    assert first.requires_grad and not second.requires_grad


def test_a_generator_starts_at_the_first_next(compile_fn):
    log = []

    def steps(x):
        log.append("body")
        yield x + len(log)

    def run(x):
        g = steps(x)
        log.append("made")
        return next(g)

    assert values(compile_fn(run)(x2())) == [3, 4] and log == ["made", "body"]


def test_a_generator_that_is_never_started(compile_fn):
    log = []

    def run(x):
        def g():
            log.append("body")
            yield x

        g()
        return x * 2

    assert values(compile_fn(run)(x2())) == [2, 4] and log == []


# Order of dicts -------------------------------------------------------------------------------------------
def reinsert(x, d):
    d["a"] = d.pop("a")
    return x * len(d)


def move(x, d):
    d.move_to_end("c", last=False)
    return x + d["c"]


def pop_first(x, d):
    key, value = d.popitem(last=False)
    d["z"] = value
    return x * value


@pytest.mark.parametrize(
    "change, kind, order",
    [
        (reinsert, dict, "bca"),
        (move, collections.OrderedDict, "cab"),
        (pop_first, collections.OrderedDict, "bcz"),
    ],
)
def test_order_after_the_call(compile_fn, change, kind, order):
    made = kind(a=1, b=2, c=3)
    compile_fn(change)(x2(), made)
    assert "".join(made) == order


# What changes between calls -------------------------------------------------------------------------------
def test_attribute_of_a_base_class(compile_fn):
    class Base:
        gain = 2

    class Derived(Base):
        pass

    compiled, seen = compile_fn(lambda x, d: x * d.gain), []
    d = Derived()
    for owner, value in ((Base, 3), (Derived, 5), (d, 7), (Base, 11)):
        seen.append(values(compiled(x2(), d)))
        owner.gain = value
    seen.append(values(compiled(x2(), d)))
    assert [s[0] for s in seen] == [2, 3, 5, 7, 7]


def test_attribute_of_a_class_becomes_a_tensor_and_goes(compile_fn):
    class Holder:
        pass

    compiled, seen = compile_fn(lambda x: x + getattr(Holder, "shift", 0)), []
    seen.append(values(compiled(x2())))
    Holder.shift = torch.tensor([10.0, 20.0])
    seen.append(values(compiled(x2())))
    Holder.shift.add_(1)
    seen.append(values(compiled(x2())))
    del Holder.shift
    seen.append(values(compiled(x2())))
    assert seen == [[1, 2], [11, 22], [12, 23], [1, 2]]


def test_property_of_a_class_is_replaced(compile_fn):
    class Owner:
        size = property(lambda self: 2)

    compiled, owner = compile_fn(lambda x, o: x * o.size), Owner()
    first = values(compiled(x2(), owner))
    Owner.size = property(lambda self: 5)
    assert (first, values(compiled(x2(), owner))) == ([2, 4], [5, 10])


@pytest.mark.parametrize(
    "change, after",
    [
        (lambda f: setattr(f, "__code__", (lambda x, n=1: x - n).__code__), [-3, -2]),
        (lambda f: setattr(f, "__defaults__", (9,)), [9, 18]),
    ],
)
def test_a_function_is_altered(compile_fn, change, after):
    def inner(x, n=4):
        return x * n

    compiled, through = compile_fn(inner), compile_fn(lambda x: inner(x))
    before = values(compiled(x2())), values(through(x2()))
    change(inner)
    assert before == ([4, 8], [4, 8]) and values(compiled(x2())) == after and values(through(x2())) == after


def test_a_method_is_replaced_on_the_instance(compile_fn):
    class Model:
        def step(self, x):
            return x + 1

    model = Model()
    compiled = compile_fn(lambda model, x: model.step(x))
    first = values(compiled(model, x2()))
    model.step = lambda x: x * 3
    assert (first, values(compiled(model, x2()))) == ([2, 3], [3, 6])


# Attributes of a compiled module --------------------------------------------------------------------------
class Switch(nn.Module):
    def __init__(self):
        super().__init__()
        self.on, self.inner = True, nn.Module()
        self.inner.factor = 2

    def forward(self, x):
        return x * self.inner.factor if self.on else -x


@contextlib.contextmanager
def switched_off(module):
    module.on = False
    try:
        yield
    finally:
        module.on = True


def test_attribute_is_set_on_the_compiled_module(compile_fn):
    compiled = compile_fn(Switch())
    with switched_off(compiled):
        inside = values(compiled(x2()))
    assert inside == [-1, -2] and values(compiled(x2())) == [2, 4]


def test_attribute_of_a_submodule_is_set_through_the_compiled_module(compile_fn):
    original = Switch()
    compiled = compile_fn(original)
    compiled(x2())
    compiled.inner.factor = 5
    assert values(compiled(x2())) == [5, 10] and original.inner.factor == 5
    original.inner = nn.Module()
    original.inner.factor = 7
    assert values(compiled(x2())) == [7, 14]


def test_attribute_is_deleted_from_the_compiled_module(compile_fn):
    compiled = compile_fn(Switch())
    compiled(x2())
    del compiled.on
    with pytest.raises(AttributeError):
        compiled(x2())


# Handlers -------------------------------------------------------------------------------------------------
def wrong_shapes(x):
    try:
        return x + torch.ones(3)
    except RuntimeError:
        return x + 10


def wrong_dimension_with_finally(x):
    steps = []
    try:
        x.sum(4)
        steps.append("no")
    except IndexError:
        steps.append("except")
    finally:
        steps.append("finally")
    return x * len(steps)


def wrong_type(x):
    try:
        x.reshape("wide")
    except (TypeError, ValueError):
        return x * 3


def suppressed(x):
    with contextlib.suppress(LookupError):
        x = x + 1
        x[7]
        x = x + 100
    return x


@pytest.mark.parametrize(
    "function, result",
    [
        (wrong_shapes, [11, 12]),
        (wrong_dimension_with_finally, [2, 4]),
        (wrong_type, [3, 6]),
        (suppressed, [2, 3]),
    ],
)
def test_errors_of_tensors_reach_handlers(compile_fn, function, result):
    assert values(compile_fn(function)(x2())) == result


# Exceptions from callees ----------------------------------------------------------------------------------
def refuse(x):
    if x.dim() == 1:
        raise ZeroDivisionError("made by hand")
    return x


def insist(x):
    assert x.dim() == 2, f"rank {x.dim()}"


@pytest.mark.parametrize(
    "callee, kind, text", [(refuse, ZeroDivisionError, "made by hand"), (insist, AssertionError, "rank 1")]
)
def test_exception_leaves_a_mode(compile_fn, callee, kind, text):
    def run(x):
        with torch.no_grad():
            y = x * 2
            callee(y)
        return y

    with pytest.raises(kind, match=text) as caught:
        compile_fn(run)(x2())
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert callee.__name__ in names and "run" in names and torch.is_grad_enabled()


def test_exception_of_an_operation_has_the_line_of_the_user(compile_fn):
    def run(x):
        y = x * 2
        return y @ torch.ones(5)  # the line

    with pytest.raises(RuntimeError) as caught:
        compile_fn(run)(x2())
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line.endswith("# the line") or any(
        frame.line.endswith("# the line") for frame in traceback.extract_tb(caught.value.__traceback__)
    )


# Subclasses of Tensor -------------------------------------------------------------------------------------
class Counting(torch.Tensor):
    calls: list = []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.calls.append(function.__name__)
        return super().__torch_function__(function, types, args, kwargs or {})


class Negating(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        out = super().__torch_function__(function, types, args, kwargs or {})
        return -out if function is torch.mul else out


def test_a_subclass_is_asked_once(compile_fn):
    Counting.calls.clear()
    out = compile_fn(lambda x: torch.exp(x))(torch.zeros(2).as_subclass(Counting))
    assert type(out) is Counting and Counting.calls.count("exp") == 1


def test_a_subclass_changes_one_function(compile_fn):
    x = x2().as_subclass(Negating)
    product, total = compile_fn(lambda x: (torch.mul(x, 3), torch.add(x, 3)))(x)
    assert type(product) is type(total) is Negating
    assert values(product.as_subclass(torch.Tensor)) == [-3, -6] and values(
        total.as_subclass(torch.Tensor)
    ) == [4, 5]


# Names of arguments ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "source",
    [
        "lambda x, nan: x + nan",
        "lambda x, torch: x + torch",
        "lambda x, self: x + self",
        "lambda x, s0: x + s0",
        "lambda inf, True_: inf + True_",
        "lambda x, L: x + L",
    ],
)
def test_names_of_arguments(compile_fn, source):
    compiled = compile_fn(eval(source))
    assert [values(compiled(x2(), n)) for n in (1, 2.5, True, torch.tensor(1.0))] == [
        [2, 3],
        [3.5, 4.5],
        [2, 3],
        [2, 3],
    ]


# Containers of a class ------------------------------------------------------------------------------------
def test_list_of_a_class_grows_by_every_call(compile_fn):
    class Model(nn.Module):
        seen = []

        def forward(self, x):
            type(self).seen.append(x.shape[0])
            self.seen.append(x * 2)
            return x + len(self.seen)

    compiled = compile_fn(Model())
    assert [values(compiled(x2())) for _ in range(2)] == [[3, 4], [5, 6]]
    assert values(Model.seen) == [2, [2, 4], 2, [2, 4]]


def test_dict_of_a_class_counts(compile_fn):
    class Model:
        counts = collections.Counter()

        def __call__(self, x, kind):
            self.counts[kind] += 1
            return x * self.counts[kind]

    compiled = compile_fn(Model())
    assert [values(compiled(x2(), kind))[0] for kind in "aba"] == [1, 1, 2]
    assert Model.counts == {"a": 2, "b": 1}
