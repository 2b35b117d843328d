"""What a region relies on is checked before it runs again: programs whose result could be kept by mistake."""
import collections
import functools

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.overrides import TorchFunctionMode


def tensor():
    return torch.arange(6.0).reshape(2, 3)


def shown(value):
    if isinstance(value, torch.Tensor):
        return (value.device.type, value.tolist() if value.device.type == "cpu" else None, tuple(value.shape),
                value.requires_grad, value.is_leaf)
    if type(value) in (list, tuple):
        return type(value)(map(shown, value))
    return value


def outcome(f, args):
    try:
        return shown(f(*args))
    except Exception as error:
        return type(error), str(error)


def check(f, make=lambda: (tensor(),), change=None, calls=3):
    """The function plainly and compiled, with arguments of their own; `change` changes them between calls."""
    compiled = torch.compile(f)
    plain_args, args = make(), make()
    for call in range(calls):
        want, got = outcome(f, plain_args), outcome(compiled, args)
        assert got == want, f"call {call}"
        if all(isinstance(a, torch.Tensor) for a in args):
            assert shown(list(args)) == shown(list(plain_args)), f"arguments after call {call}"
        if change:
            change(*plain_args)
            change(*args)
    return compiled


class Thing:
    def method(self):
        pass


def compare_two(f):
    """A region made for one object, then another one of its class."""
    compiled = torch.compile(f)
    x, first, second = tensor(), Thing(), Thing()
    assert compiled(x, first)[1] == f(x, first)[1]
    assert compiled(x, second)[1] == f(x, second)[1]
    assert compiled(x, first)[1] == f(x, first)[1]


TEXTS = {
    "f-string": lambda o: f"{o}",
    "repr in an f-string": lambda o: f"{o!r:>80}",
    "repr": repr,
    "str": str,
    "str.format": lambda o: "{}".format(o),
    "format": lambda o: format(o, ""),
    "format_map": lambda o: "{a}".format_map({"a": o}),
    "method": lambda o: o.__repr__(),
    "method of object": lambda o: object.__str__(o),
    "percent": lambda o: "%s %r" % (1, o),
    "in a list": lambda o: f"{[o]}",
    "in a set": lambda o: repr({o}),
    "in a dict": lambda o: str({1: (o,)}),
    "of an exception": lambda o: f"{ValueError(o)!r}",
    "of a method": lambda o: str(o.method),
    "of a defaultdict": lambda o: str(collections.defaultdict(o.method)),
    "map": lambda o: list(map(repr, [o])),
    "partial": lambda o: functools.partial("{} {}".format, o)(1),
    "join": lambda o: ",".join([str(o)]),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_that_shows_an_address(text):
    compare_two(lambda x, o: (x * 2, text(o)))


HASHES = {
    "hash": hash,
    "method": lambda o: o.__hash__(),
    "of a tuple": lambda o: hash((1, (o,))),
    "of a frozenset": lambda o: hash(frozenset([o])),
    "id": id,
    "map": lambda o: list(map(id, [o])),
    "sorted by id": lambda o: sorted(map(id, [o, o])),
}


@pytest.mark.parametrize("number", HASHES.values(), ids=HASHES)
def test_number_that_follows_from_an_address(number):
    compare_two(lambda x, o: (x * 2, number(o)))


def test_text_without_addresses_is_captured():
    def f(x):
        try:
            raise ValueError("a", 3, [x.shape[0]])
        except ValueError as e:
            shape = ",".join(map(str, x.shape))
            return x * 2, f"{e} {x.shape} {x.dtype} {x.device!s:>8} {1.5:.3f} {('a', 2)!r} {shape}"

    compiled = check(f)
    assert len(compiled.explain()["graphs"]) == 1 and not compiled.explain()["breaks"]


def test_class_as_the_key_of_a_table_of_functions():
    table = {str: Thing.method, int: len}

    def f(x):
        return x * 2, table.get(str) is Thing.method, str in table

    assert not check(f).explain()["breaks"]


def test_text_of_a_list_that_holds_itself():
    def f(x):
        a = [1]
        a.append(a)
        return x * 2, f"{a}"

    check(f)


def test_module_added_to_modules_that_were_read_by_name():
    class Chain(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            x = self.first(x)
            for module in self._modules.values():
                x = module(x)
            return x

    m = Chain()
    compiled = torch.compile(m)
    x = tensor()
    assert torch.equal(compiled(x), m(x))
    m.third = nn.Linear(3, 3)
    assert torch.equal(compiled(x), m(x))


def test_two_checks_of_one_place():
    def f(x, o):
        if isinstance(o.values, dict):
            x = x * o.values["a"]
        return x + len(o.values)

    def make():
        o = Thing()
        o.values = {"a": 1.0}
        return tensor(), o

    check(f, make, lambda x, o: o.values.update({len(o.values): 0}))


def test_ordered_dict_in_another_order():
    def f(x, d):
        for v in d.values():
            x = x * 2 + v
        return x

    check(f, lambda: (tensor(), collections.OrderedDict(a=1.0, b=2.0)),
          lambda x, d: d.move_to_end(next(iter(d))))


def test_deleted_slot():
    class Slotted:
        __slots__ = ("a",)

    def f(x, s):
        del s.a
        try:
            return x * 2, s.a
        except AttributeError:
            return x * 3, None

    def make():
        s = Slotted()
        s.a = 1
        return tensor(), s

    check(f, make, calls=1)


def set_attribute(x):
    y = x * 2
    x.requires_grad = True
    return y, x * 3


def set_by_method(x):
    y = x * 2
    x.requires_grad_()
    return y, x * 3


def set_gradient(x):
    x.grad = (x * 2).detach()
    return x * 3


@pytest.mark.parametrize("f", [set_attribute, set_by_method, set_gradient])
def test_autograd_state_of_an_argument(f):
    check(f)


@pytest.mark.parametrize("name, args", [("t_", ()), ("squeeze_", ()), ("unsqueeze_", (0,)), ("detach_", ()),
                                        ("transpose_", (0, 1)), ("as_strided_", ((3,), (1,)))])
def test_argument_with_another_shape_after_the_call(name, args):
    def f(x):
        y = x * 2
        getattr(x, name)(*args)
        return y, x + 1

    check(f, calls=1)


def test_classes_made_inside_are_new_in_each_call():
    def statement(x):
        class A:
            k = 1

        return x * A.k, A

    def call(x):
        return x * 2, type("A", (), {"k": 2})

    for f in (statement, call):
        compiled = torch.compile(f)
        assert compiled(tensor())[1] is not compiled(tensor())[1]


def test_guards_run_no_code_of_the_program():
    calls = []

    class Key:
        def __eq__(self, other):
            calls.append("eq")
            return self is other

        def __hash__(self):
            calls.append("hash")
            return 1

    key = Key()
    table = {key: 2.0}
    chosen = {key}
    compiled = torch.compile(lambda x: x * len(table) + sum(table.values()) + len(chosen))
    x = tensor()
    assert torch.equal(compiled(x), x + 3)
    calls.clear()
    assert torch.equal(compiled(x), x + 3)
    assert not calls


@pytest.fixture
def default_device():
    yield torch.set_default_device
    torch.set_default_device(None)


def test_default_device(default_device):
    compiled = torch.compile(lambda: torch.ones(2) * 2)
    assert compiled().device.type == "cpu"
    default_device("meta")
    assert compiled().device.type == "meta"
    default_device("cpu")
    assert compiled().tolist() == [2, 2]
    with torch.device("meta"):
        assert compiled().device.type == "meta"
    default_device(None)
    assert compiled().tolist() == [2, 2]
    explained = compiled.explain()
    assert len(explained["graphs"]) == 3 and not explained["breaks"]


def test_tensors_without_memory_are_made_without_memory():
    for f in (lambda x: torch.ones(2, device="meta") * 2,
              lambda x: torch.ones(2, 3, device="meta") @ x.to("meta").T,
              lambda x: x.to("meta") + 1):
        check(f)


def test_function_mode_sees_every_call():
    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    def f(x):
        return (x * 2).exp()

    compiled = torch.compile(f)
    compiled(tensor())
    with Mode():
        f(tensor())
        plain = list(seen)
        seen.clear()
        compiled(tensor())
    assert seen == plain and len(plain) >= 2


def test_the_name_of_what_is_called_is_not_asked_of_the_program():
    asked = []

    class Caller:
        def __getattr__(self, name):
            asked.append(name)
            raise AttributeError(name)

        def __call__(self, x):
            return x * 2

    caller = Caller()
    assert torch.compile(lambda x: caller(x) + 1)(torch.ones(1)).item() == 3.0
    assert not asked
