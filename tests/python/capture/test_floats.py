"""Floats that vary become inputs of a graph at their second value."""
import math

import pytest

import flambeau as torch

pytestmark = pytest.mark.skipif(not torch._C._has_capture, reason="capture needs another version of CPython")

NUMBERS = [0.5, 0.25, 3.7, -1e10, 0.0, -0.0, float("inf"), float("nan"), 1e-300, 0.1]


def shown(value):
    if isinstance(value, torch.Tensor):
        return value.dtype, str(value.tolist())
    if isinstance(value, (tuple, list)):
        return [shown(v) for v in value]
    return type(value), repr(value)


def check(f, numbers=NUMBERS, dtype=torch.float32, graphs=2, **options):
    compiled = torch.compile(f, **options)
    for number in numbers:
        x = torch.arange(4.0).to(dtype)
        try:
            want = shown(f(x, number))
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                compiled(x, number)
            continue
        assert shown(compiled(x, number)) == want, number
    report = compiled.explain()
    assert len(report["graphs"]) == graphs and not report["breaks"], report["text"]


SYMBOLIC = {
    "product": lambda x, s: x * s,
    "arithmetic": lambda x, s: (s - x) / 3 * s + 1,
    "in place": lambda x, s: x.clone().to(torch.float64).mul_(s).sub_(s),
    "0-dim": lambda x, s: x.sum() * s,
    "comparison of elements": lambda x, s: (x < s, x == s),
    "choice": lambda x, s: torch.where(x > 1, x, s),
    "fill": lambda x, s: x.double().masked_fill(x > 1, s),
    "number alone": lambda x, s: (x + x, s * 2 + 1, s, -s, abs(s), sum([s, 2, s])),
    "quotient by a number": lambda x, s: x * (s / 7 - 0.5),
    "questions": lambda x, s: x * s if isinstance(s, float) and type(s) is float else x,
    "closure": lambda x, s: (lambda y: y * s)(x),
    "containers": lambda x, s: (x * [s][0], {"s": s}, (s, s)),
}


@pytest.mark.parametrize("f", SYMBOLIC.values(), ids=SYMBOLIC)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64])
def test_one_graph_for_all_numbers(f, dtype):
    check(f, dtype=dtype)


@pytest.mark.parametrize("name", ["add", "sub"])
def test_alpha(name):
    check(lambda x, s: (getattr(torch, name)(x, x + 1, alpha=s), getattr(x.clone(), name + "_")(x, alpha=s)))


NEEDED = {
    "branch": lambda x, s: x * s if s > 0.3 else x - s,
    "square root": lambda x, s: x * math.sqrt(abs(s) if abs(s) < 1e9 else 1.0),
    "power": lambda x, s: x**s,
    "text": lambda x, s: (x * 2, f"{s:.2f}", str(s)),
    "key": lambda x, s: (x * 2, {s: 1}),
    "limit": lambda x, s: x.clamp(max=s),
    "divisor": lambda x, s: x * (1 / s),
    "rounded": lambda x, s: x * round(s, 1),
    "integer": lambda x, s: x * int(s),
    "whole part": lambda x, s: x * (math.floor(s) + math.ceil(s) + math.trunc(s)),
    "minimum": lambda x, s: x * min(s, 1.0),
    "tensor": lambda x, s: torch.tensor([s, 1.0]) * x[:2],
}


@pytest.mark.parametrize("f", NEEDED.values(), ids=NEEDED)
def test_what_needs_the_number_follows_it(f):
    numbers = [0.5, 0.25, 3.75, 0.0, 0.5, 0.25]
    check(f, numbers, graphs=3 if f is NEEDED["divisor"] else 4)


def test_dynamic_false_keeps_numbers():
    check(lambda x, s: x * s, [0.5, 0.25, 0.75], graphs=3, dynamic=False)


def test_ints_and_floats_in_turn():
    compiled = torch.compile(lambda x, s: x * s)
    for number in (0.5, 1, True, 0.75, 2, 0.1, 3, False, -0.5):
        got, x = compiled(torch.ones(2), number), torch.ones(2)
        assert shown(got) == shown(x * number)


def test_an_attribute_that_counts():
    class Decay:
        def __init__(self):
            self.rate = 1.0

        def step(self, x):
            self.rate = self.rate * 0.5 + 0.125
            return x * self.rate

    ours, plain = Decay(), Decay()
    compiled = torch.compile(Decay.step)
    for k in range(10):
        x = torch.full((2,), float(k))
        assert shown(compiled(ours, x)) == shown(plain.step(x))
        assert ours.rate == plain.rate and type(ours.rate) is float
    assert len(compiled.explain()["graphs"]) == 2


def test_a_gradient_by_what_is_multiplied():
    compiled = torch.compile(lambda x, s: (x * s).sin().sum() + s)
    for number in NUMBERS[:5]:
        grads = []
        for function in (compiled, lambda x, s: (x * s).sin().sum() + s):
            x = torch.arange(3.0, requires_grad=True)
            function(x, number).backward()
            grads.append(x.grad.tolist())
        assert grads[0] == grads[1]


def test_a_schedule_of_rates():
    """A hand-written step: the rate is a number that changes each time."""
    def step(w, g, rate):
        w.add_(g, alpha=-rate)
        w -= rate * 0.1 * w
        return w.sum()

    compiled, ours, plain = torch.compile(step, fullgraph=True), torch.ones(3), torch.ones(3)
    for k in range(12):
        rate, g = 0.1 * 0.9**k, torch.full((3,), 1.0 + k)
        assert shown(compiled(ours, g, rate)) == shown(step(plain, g, rate))
        assert ours.tolist() == plain.tolist()
    assert len(compiled.explain()["graphs"]) == 2


def test_a_function_as_backend_gets_numbers():
    seen = []

    def backend(module, inputs):
        seen.append([type(i) for i in inputs])
        return module.forward

    compiled = torch.compile(lambda x, s: x * s, backend=backend)
    for number in (0.5, 0.25, 0.125):
        assert compiled(torch.ones(1), number).item() == number
    assert all(kind is torch.Tensor for kinds in seen for kind in kinds)
