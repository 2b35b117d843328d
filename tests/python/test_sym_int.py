"""Sizes inside of traced functions: one capture serves every size, and what needs the number is guarded."""
import copy
import math
import numbers
import operator
import pickle

import pytest

import flambeau as fl
from flambeau.compile_function import trace


def close(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and (a.numel() == 0 or (a - b).abs().max().item() < 1e-5)


def check(f, *calls, captures=1, dynamic=True, compile=fl.compile):
    """Every call of the compiled function gives what f gives; asserts how many captures that took."""
    compiled = compile(f, dynamic=dynamic)
    for args in calls:
        args = args if isinstance(args, tuple) else (args,)
        expected, got = f(*args), compiled(*args)
        if isinstance(expected, fl.Tensor):
            expected, got = [expected], [got]
        assert len(expected) == len(got)
        for e, g in zip(expected, got):
            assert close(g, e), (args[0].shape, g, e)
            assert g.stride() == e.stride()
    report = compiled.explain()
    assert not report["fallbacks"], report["text"]
    assert len(report["graphs"]) == captures, report["text"]


def inputs(*shapes):
    fl.manual_seed(0)
    return [fl.randn(*s) for s in shapes]


# Shape arithmetic.


@pytest.mark.parametrize("dynamic, captures", [(None, 2), (True, 1)])
def test_heads_of_attention(dynamic, captures):
    def f(x):
        B, N, C = x.shape
        return x.reshape(B, N, 4, C // 4).transpose(1, 2) * 2

    check(f, *inputs((2, 5, 8), (3, 5, 8), (7, 5, 8)), dynamic=dynamic, captures=captures)


def test_dynamic_false_captures_each_size():
    def f(x):
        return x.reshape(x.size(0) * x.size(1))

    check(f, *inputs((2, 3), (4, 3), (2, 3)), captures=2, dynamic=False)


def test_all_dimensions():
    def f(x):
        B, C, H, W = x.size()
        y = x.view(B, C, H * W).permute(0, 2, 1)
        return y.reshape(B * H * W, C), x.flatten(1).view(B, -1, W), x.unflatten(3, (W, 1))

    check(f, *inputs((2, 3, 4, 5), (3, 6, 2, 7), (5, 2, 9, 3)))


def test_gradients():
    def f(x, w):
        n, k = x.shape
        y = (x @ w).view(n, 2, w.size(1) // 2)[:, :, : n // 2].sum(2) / n
        return (y * n).pow(2).mean()

    compiled = fl.compile(f, dynamic=True)
    for n in (4, 5, 9):
        x, w = inputs((n, 3), (3, 12))
        w.requires_grad_(True)
        (by_eager,) = fl.autograd.grad(f(x, w), w)
        (by_compiled,) = fl.autograd.grad(compiled(x, w), w)
        assert close(by_compiled, by_eager)
    report = compiled.explain()
    assert len(report["graphs"]) == 1 and not report["fallbacks"], report["text"]


def test_parts_of_a_tensor():
    def f(x):
        n, m = x.shape
        return (x[: n // 2], x[n // 2:, 1:], x[:, : m - 1], x[-(n - 1):], x[n - 1], x[:, -1 - m // 2],
                x.narrow(1, m // 2, m - m // 2), x.select(0, n // 2), x.index_select(0, fl.arange(n // 2)))

    check(f, *inputs((4, 5), (7, 6), (9, 12)))


def test_slices_beyond_the_ends():
    def f(x, y):
        n = y.size(0)
        return x[:n], x[-n:], x[n:], x[n - 4:], x[: n - 4], x[2:-n]

    x = fl.arange(6)
    compiled = fl.compile(f, dynamic=True)
    for n in (2, 3, 4, 5, 6, 7, 20):
        for got, expected in zip(compiled(x, fl.ones(n)), f(x, fl.ones(n))):
            assert got.tolist() == expected.tolist(), n
    assert not compiled.explain()["fallbacks"]


def test_assignment_to_parts():
    def f(x):
        y = x.clone()
        n, m = y.shape
        y[: n // 2] = n
        y[:, m - 1] = 0
        y[n - 1, m // 2:] += m
        return y

    check(f, *inputs((4, 5), (7, 6), (9, 12)))


def test_splits():
    def f(x):
        n = x.size(0)
        a, b = x.split(n // 2)
        c, d = x.split([n - 3, 3])
        return a + b, c * 2, d, *x.chunk(2)

    check(f, *inputs((6, 3), (8, 3), (10, 3)))


def test_new_tensors():
    def f(x):
        n, m = x.shape
        return (fl.zeros(n, 2), fl.ones((m, n)), fl.arange(n), fl.arange(1, 2 * n, 2), fl.full((n,), 1.5),
                fl.eye(n, m), x.new_zeros(m), fl.empty(n, 0), x[:1].expand(n + 1, m), x.repeat(2, n),
                fl.tril_indices(3, 3) + m, fl.linspace(0, 1, 3).repeat(n), x.new_full((m,), 3.0))

    check(f, *inputs((4, 5), (7, 6)))


def test_padding_and_rolls():
    def f(x):
        n = x.size(0)
        return (fl.nn.functional.pad(x, (0, n)), fl.nn.functional.pad(x, (n // 2, 1, 1, n), value=2.0),
                x.repeat_interleave(2, 0, output_size=2 * n))

    check(f, *inputs((4, 3), (5, 3)))


def test_modules_of_sizes():
    class Block(fl.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.norm = fl.nn.Linear(8, 24), fl.nn.LayerNorm(8)

        def forward(self, x):
            B, N, C = x.shape
            q, k, v = self.qkv(self.norm(x)).reshape(B, N, 3, 2, C // 2).permute(2, 0, 3, 1, 4).unbind(0)
            mask = fl.ones(N, N, dtype=fl.bool).tril()
            a = ((q @ k.transpose(-2, -1)) * C**-0.5).masked_fill(~mask, float("-inf")).softmax(-1)
            return fl.nn.functional.layer_norm((a @ v).transpose(1, 2).reshape(B, N, C), (C,))

    fl.manual_seed(0)
    block = Block()
    compiled = fl.compile(lambda x: block(x), dynamic=True)
    for B in (2, 3, 5):
        x = fl.randn(B, 6, 8)
        assert close(compiled(x), block(x))
    assert len(compiled.explain()["graphs"]) == 1, compiled.explain()["text"]


# Numbers made of sizes.


def test_sizes_as_numbers():
    def f(x):
        n = x.size(0)
        return (x * n, n * x, x + n, n - x, x / n, n / x, x // n, x % n, fl.full((2,), n),
                fl.maximum(x, fl.full((), n)), x.masked_fill(x > 0, n),
                x.sum(0) / n, fl.where(x > 0, n, x), (x > n).sum(), x.clamp(max=n))

    compiled = fl.compile(f, dynamic=True)
    for n in (4, 5, 9):
        (x,) = inputs((n, 3))
        for got, expected in zip(compiled(x), f(x), strict=True):
            assert close(got, expected) and got.dtype == expected.dtype, n
    assert not compiled.explain()["fallbacks"], compiled.explain()["text"]


def test_a_size_in_the_place_of_a_number_is_one_capture():
    def f(x):
        n = x.size(0)
        return x * n + n, x.sum(0) / n, fl.full((2,), n), n * fl.arange(n), x ** n

    check(f, *inputs((4, 3), (5, 3), (9, 3)))


def test_gradients_through_products_with_sizes():
    def f(x):
        n = x.size(0)
        return ((x * n).exp() / n).sum()

    compiled = fl.compile(f, dynamic=True)
    for n in (2, 3, 4):
        (x,) = inputs((n, 3))
        x.requires_grad_(True)
        assert close(fl.autograd.grad(compiled(x), x)[0], fl.autograd.grad(f(x), x)[0])
    assert len(compiled.explain()["graphs"]) == 1, compiled.explain()["text"]


BINARY = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.lshift,
          operator.rshift, operator.and_, operator.or_, operator.xor, operator.pow, fl.sym_max, fl.sym_min,
          max, min, lambda a, b: divmod(a, b)[0], lambda a, b: divmod(a, b)[1]]
SHIFTS = (operator.lshift, operator.rshift, operator.pow)


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
def test_arithmetic_is_pythons(op):
    """Against Python's integers, of either sign on either side, symbolic or not."""

    def f(x):
        n, m = x.shape
        lefts = (n, n - 6, 3 - n, -m, 2 * n - m)
        rights = (2, 3, 1) if op in SHIFTS else (n, m, n - 9, -n, 3, -3, n - m - 5)
        values = [op(a, b) for a in lefts for b in rights] + [op(5, m), op(-7, m), op(True, n)]
        return fl.stack([fl.full((), v) for v in values])

    compiled = fl.compile(f, dynamic=True)
    for n, m in ((2, 2), (4, 3), (7, 3), (8, 11), (10, 4)):
        x = fl.ones(n, m)
        assert compiled(x).tolist() == f(x).tolist(), (n, m)
    assert not compiled.explain()["fallbacks"], compiled.explain()["text"]


@pytest.mark.parametrize("op", [operator.neg, operator.pos, abs, operator.invert, round, math.floor,
                                math.ceil, math.trunc, int, copy.copy, copy.deepcopy, operator.index,
                                lambda n: n.bit_length(), lambda n: round(n, -1), lambda n: hash(n),
                                lambda n: n.numerator, lambda n: pickle.loads(pickle.dumps(n)), fl.sym_int])
def test_functions_of_one_number_are_pythons(op):
    def f(x):
        return fl.stack([fl.full((), op(v)) for v in (x.size(0), x.size(0) - 5, -x.size(0))])

    compiled = fl.compile(f, dynamic=True)
    for n in (2, 5, 9, 15):
        assert compiled(fl.ones(n)).tolist() == f(fl.ones(n)).tolist()


def test_floats_of_sizes():
    def f(x):
        n = x.size(0)
        values = (n / 2, 7 / n, float(n), math.sqrt(n), n * 0.5, n ** -0.5, n ** 0.5, 2.0 ** n, n - 1.5,
                  round(n / 3, 2), fl.sym_float(n), n // 2.0, n % 1.5, fl.sym_max(n, 2.5))
        return fl.tensor(values), x * (n ** -0.5)

    check(f, *inputs((2,), (3,), (2,)), captures=2)


def test_numbers_beyond_64_bits():
    def f(x):
        n = x.size(0)
        big = n * 2**70 + n
        return fl.full((), big % 1000), fl.full((), (n << 62) // 2**60), fl.full((), (n * 2**40) ** 3 % 97)

    check(f, *inputs((3,), (5,)), captures=2)


def test_which_results_are_symbolic():
    plain, symbolic = [], []

    def f(x):
        n = x.size(0)
        plain.extend([n - n, n * 0, (n + 3) - n, n // n, n % n, x.ndim, x.size(1), x.stride(1), n > 1])
        symbolic.extend([n, -n, n + 1, n * 2 // 3, abs(n), x.numel(), x.shape[0], x.shape[:1].numel()])
        assert isinstance(n, int) and isinstance(n, numbers.Integral) and isinstance(n, (float, int))
        assert not isinstance(n, (bool, float))
        return x + 1

    trace(f)(fl.ones(3, 2))
    assert set(map(type, plain)) == {int, bool} and set(map(type, symbolic)) == {fl.SymInt}


# What needs the number.


def test_branches_recompile():
    def f(x):
        n = x.size(0)
        y = x * 2 if n > 4 else x - 1
        if n % 2 == 0:
            y = y + 10
        return y + 1 if 3 < n <= 6 and n != 5 else y

    # n=3: odd, small; 4: even; 5: odd, large; 6: even, large; 8: above 6; 9: odd
    check(f, *(fl.ones(n, 2) for n in (3, 4, 5, 6, 8, 9, 3, 10, 12)), captures=6)


def test_a_branch_that_all_sizes_take_has_no_guard():
    def f(x):
        n = x.size(0)
        assert n and n > 0 and n != 1 and n * 2 > n and not n < 2 and n == x.size(0) and n is not None
        assert n != "n" and n not in ("same", "valid", None)
        return x + 1

    check(f, *inputs((2, 3), (5, 3), (9, 3)))


@pytest.mark.parametrize("f", [
    lambda x: x + len(f"{x.size(0)}"),
    lambda x: x + len(f"{x.size(0):05d}"),
    lambda x: x + int("%d" % x.size(0)),
    lambda x: x + int(str(x.shape[0])) + len(repr(x.shape)),
    lambda x: x + {2: 10, 3: 20}.get(x.size(0), 5),
    lambda x: x + {x.shape: 1}[(x.size(0), 3)],
    lambda x: x + sum(i for i in range(x.size(0))),
    lambda x: x + [7, 8, 9][x.size(0) - 2],
    lambda x: x + sum([1] * x.size(0)),
    lambda x: x + len(x),
    lambda x: x + int(x.size(0)),
    lambda x: x + fl.tensor([x.size(0), 2, 3]),
    lambda x: x + sum(float(row.sum()) if False else 1 for row in x),
    lambda x: x.sum(x.size(0) - x.size(0)) + x.size(0).bit_length(),
    lambda x: x.transpose(0, x.size(0) - 2) if x.size(0) < 4 else x,
])
def test_what_needs_the_number_specialises(f):
    check(f, *inputs((2, 3), (3, 3), (2, 3)), captures=2, dynamic=None)


def test_sizes_of_one_and_zero():
    def f(x, y):
        part = x[: x.size(0) // 2]
        return part + y, x[x.size(0) - 2:][1:].sum(0), x[2:].sum()

    y = fl.arange(3.0).unsqueeze(1)
    compiled = fl.compile(f, dynamic=True)
    for shape in ((2, 4), (3, 4), (4, 3), (6, 4), (7, 4)):
        (x,) = inputs(shape)
        if shape[0] // 2 in (1, 3):
            for got, expected in zip(compiled(x, y), f(x, y), strict=True):
                assert close(got, expected), shape
        else:
            with pytest.raises(RuntimeError):
                f(x, y)
            with pytest.raises(RuntimeError):
                compiled(x, y)
    assert not compiled.explain()["fallbacks"]


def test_an_expression_that_is_minus_one_stands_for_the_rest():
    def f(x):
        return x.reshape(x.size(0) - 3, 2), x[:1].expand(x.size(0) - 3, 3 * x.size(0) - 6)

    check(lambda x: (x.reshape(x.size(0) - 3, 2),), fl.ones(2, 6), fl.ones(2, 8), captures=1)
    with pytest.raises(RuntimeError):
        fl.compile(f, dynamic=True)(fl.ones(4, 4))


def test_sizes_with_negative_expressions_raise():
    for f in (lambda x: fl.zeros(x.size(0) - 5), lambda x: x.new_empty(x.size(0) - 5, 2),
              lambda x: x.repeat(3 - x.size(0))):
        with pytest.raises(RuntimeError):
            f(fl.ones(4))
        with pytest.raises(RuntimeError):
            fl.compile(f, dynamic=True)(fl.ones(4))
    compiled = fl.compile(lambda x: fl.zeros(x.size(0) - 5), dynamic=True)
    assert compiled(fl.ones(8)).shape == (3,) and compiled(fl.ones(9)).shape == (4,)
    assert compiled(fl.ones(6)).shape == (1,) and compiled(fl.ones(5)).shape == (0,)
    with pytest.raises(RuntimeError):
        compiled(fl.ones(4))


# Size.


def test_size_objects():
    def f(x):
        s = x.shape
        assert isinstance(s, fl.Size) and isinstance(s[1:], fl.Size) and isinstance(s + (1,), fl.Size)
        assert s == x.size() and s[:1] != s and len(s) == 3 and s == tuple(s) and fl.Size(s) == s
        assert x.numel() == s.numel() == x.nelement() == math.prod(s) and x.nbytes == 4 * x.numel()
        assert x.stride(0) == s[1] * s[2] and x.stride()[1] == s[2] and x.storage_offset() == 0
        b, *rest = s
        y = x.view(s[:-1] + (s[-1], 1)).view(*s).view(fl.Size([b, *rest]))
        return y, x.reshape(s.numel()), fl.zeros((2,) + s[1:])

    check(f, *inputs((2, 3, 4), (5, 3, 6), (7, 9, 2)))


def test_offsets_and_strides():
    def f(x):
        y = x.t()[x.size(1) // 2:]
        return x.as_strided(y.shape, y.stride(), y.storage_offset()) * 2

    check(f, *inputs((2, 6), (3, 6), (5, 8)))


# Outside of traces.


def test_nothing_changes_in_eager_mode():
    x = fl.ones(3, 4)
    for n in (x.size(0), x.shape[1], x.numel(), x.stride(0), x.storage_offset(), x.shape.numel(), x.nbytes):
        assert type(n) is int
    with pytest.raises(TypeError):
        fl.SymInt(3)


def test_what_a_trace_leaves_behind_is_its_number():
    seen = []

    def f(x):
        seen.append(x.size(0))
        return x + 1

    compiled = trace(f, dynamic=True)
    compiled(fl.ones(4))
    compiled(fl.ones(6))
    (n,) = seen
    assert n == 4 and n + 1 == 5 and str(n) == "4" and hash(n) == hash(4) and type(n * 2) is int
    assert fl.zeros(n, 2).shape == (4, 2) and copy.copy(n) == 4 and range(10)[n] == 4
    # In another trace it is the same constant.
    other = trace(lambda x: x.view(-1, n) * n, dynamic=True)
    for rows in (2, 3):
        assert other(fl.ones(4 * rows)).shape == (rows, 4)
    assert len(other.explain()["graphs"]) == 1


def test_autograd_functions_keep_sizes():
    class Scale(fl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x.sum(0) * ctx.shape[0]

        @staticmethod
        def backward(ctx, g):
            return (g * ctx.shape[0]).expand(ctx.shape)

    compiled = fl.compile(lambda x: Scale.apply(x * 2), dynamic=True)
    for n in (3, 4, 6):
        (x,) = inputs((n, 2))
        x.requires_grad_(True)
        y = compiled(x)
        assert close(y, Scale.apply(x * 2))
        assert fl.autograd.grad(y.sum(), x)[0].tolist() == [[2.0 * n] * 2] * n
    assert len(compiled.explain()["graphs"]) == 1, compiled.explain()["text"]


# Errors.


@pytest.mark.parametrize("f, error, message", [
    (lambda x: x.view(x.size(0) + 1, 2), RuntimeError, "invalid for input of size"),
    (lambda x: x + x.size(0) // (x.size(0) - 4), ZeroDivisionError, "division"),
    (lambda x: x + x.size(0) % (x.size(0) - 4), ZeroDivisionError, "modulo"),
    (lambda x: x if x.size(0) < "a" else x, TypeError, "not supported between"),
    (lambda x: x + (x.size(0) + "a"), TypeError, "unsupported operand"),
    (lambda x: x[x.size(0)], IndexError, "out of range"),
    (lambda x: x[-1 - x.size(0)], IndexError, "out of range"),
    (lambda x: x[:2][-x.size(0)], IndexError, "out of range"),
    (lambda x: x.narrow(0, 1, x.size(0)), RuntimeError, "exceeds dimension size"),
    (lambda x: x.expand(x.size(0) + 1, 3), RuntimeError, "must match the existing size"),
    (lambda x: x.size(0).no_such_attribute, AttributeError, "no_such_attribute"),
])
def test_errors(f, error, message):
    with pytest.raises(error, match=message):
        fl.compile(f, dynamic=True)(fl.ones(4, 3))


def test_functions_about_symbolic_sizes():
    from flambeau.fx.experimental import symbolic_shapes

    is_symbolic = []

    def f(x):
        n = x.size(0)
        is_symbolic.append(symbolic_shapes.is_symbolic(n) and not symbolic_shapes.is_concrete_int(n))
        assert fl.sym_sum([n, n]) == 2 * n and fl.sym_ite(n > 0, 1, 2) == 1 and fl.sym_not(n < 0)
        return fl.zeros(fl.sym_max(n, 5)), fl.zeros(fl.sym_min(5, n))

    check(f, *(fl.ones(n) for n in (3, 5, 9)), compile=trace)
    assert is_symbolic == [False, True, False, False]  # eager, the trace, eager, eager
    assert fl.sym_max(2, 3) == 3 and fl.sym_min(2, 3.0) == 2.0 and isinstance(fl.sym_min(2, 3.0), float)
    assert symbolic_shapes.is_concrete_int(3) and not symbolic_shapes.is_symbolic(3)
