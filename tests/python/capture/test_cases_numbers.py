"""dtypes, integers, reductions, ties, nan and scans, in kinds that compilers of tensor programs got wrong."""
import ctypes
import math
import struct

import flambeau as torch
import pytest
from compilers import close, values
from flambeau.nn import functional as F

NAN, INF = math.nan, math.inf
WIDTHS = {
    torch.int8: ctypes.c_int8,
    torch.int16: ctypes.c_int16,
    torch.int32: ctypes.c_int32,
    torch.int64: ctypes.c_int64,
    torch.uint8: ctypes.c_uint8,
}


def name(x):
    return str(x).split(".")[-1]


# Integers wrap in their own width -------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", WIDTHS, ids=name)
@pytest.mark.parametrize(
    "form",
    [lambda x: -x, lambda x: x + x, lambda x: x * x, lambda x: x - 100, lambda x: ~x],
    ids=["neg", "add", "mul", "sub", "not"],
)
def test_integers_wrap_before_they_widen(compile_fn, dtype, form):
    wrap = WIDTHS[dtype]
    numbers = [wrap(n).value for n in (0, 1, -1, 6, 100, 2 ** (8 * ctypes.sizeof(wrap) - 1) - 1)]
    small, wide, smaller = compile_fn(lambda x: (form(x), form(x).to(torch.int64), form(x) < 4))(
        torch.tensor(numbers, dtype=dtype)
    )
    want = [wrap(form(n)).value for n in numbers]
    assert small.dtype == dtype and values(small) == want and values(wide) == want
    assert values(smaller) == [n < 4 for n in want]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64], ids=name)
def test_least_integer_by_minus_one(compile_fn, dtype):
    least = -(2 ** (8 * ctypes.sizeof(WIDTHS[dtype]) - 1))
    a, b = torch.tensor([least, 7, -7], dtype=dtype), torch.tensor([-1, -2, 2], dtype=dtype)
    by, remainder = compile_fn(lambda a, b: (a // b, a % b))(a, b)
    assert values(by) == [least, -4, -4] and values(remainder) == [0, -1, 1]


def test_sums_of_small_integers_are_wide(compile_fn):
    x = torch.full((100,), 100, dtype=torch.int8)
    total, product, kept = compile_fn(lambda x: (x.sum(), x[:3].prod(), x.sum(dtype=torch.int8)))(x)
    assert (total.item(), product.item(), kept.item()) == (10000, 1000000, ctypes.c_int8(10000).value)
    assert total.dtype == product.dtype == torch.int64


@pytest.mark.parametrize(
    "multiply", [torch.matmul, lambda a, b: a @ b, torch.bmm], ids=["matmul", "operator", "bmm"]
)
@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.uint8], ids=name)
def test_products_of_small_integers_keep_their_width(compile_fn, multiply, dtype):
    a, b = [[100, 3], [-1, 2]], [[2, 1], [7, -128]]

    def batch(rows):
        return torch.tensor([[[WIDTHS[dtype](n).value for n in row] for row in rows]], dtype=dtype)

    out = compile_fn(lambda a, b: multiply(a, b))(batch(a), batch(b))
    want = [[sum(a[i][k] * b[k][j] for k in range(2)) for j in range(2)] for i in range(2)]
    assert out.dtype == dtype and values(out) == values(batch(want))


# Quotients ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=name)
@pytest.mark.parametrize(
    "divide",
    [
        lambda a, b: a // b,
        lambda a, b: torch.div(a, b, rounding_mode="floor"),
        lambda a, b: torch.floor_divide(a, b),
    ],
    ids=["operator", "div", "floor_divide"],
)
def test_floor_of_quotients_that_are_not_exact(compile_fn, dtype, divide):
    a, b = torch.tensor([1.0, 2.0, -1.0, 7.0], dtype=dtype), torch.tensor([0.1, 0.1, 0.1, 0.7], dtype=dtype)
    want = [
        math.floor((x - math.fmod(x, y)) / y + 0.5) - (math.fmod(x, y) != 0 and (x < 0) != (y < 0))
        for x, y in zip(values(a), values(b))
    ]
    assert values(compile_fn(divide)(a, b)) == want


@pytest.mark.parametrize("a, b", [(1e15, 1e-3), (123456789.0, 1e-8), (-5e9, 3e-7), (8.0, INF), (1.5, 0.5)])
@pytest.mark.parametrize("kind, dtype", [("f", torch.float32), ("d", torch.float64)])
def test_remainders_are_exact(compile_fn, a, b, kind, dtype):
    a, b = (struct.unpack(kind, struct.pack(kind, v))[0] for v in (a, b))
    rest, modulo = compile_fn(lambda x, y: (torch.fmod(x, y), torch.remainder(x, y)))(
        torch.tensor([a], dtype=dtype), torch.tensor([b], dtype=dtype)
    )
    want = math.fmod(a, b)
    assert values(rest) == [want]
    shifted = want + b if want and (want < 0) != (b < 0) else want
    assert values(modulo) == [struct.unpack(kind, struct.pack(kind, shifted))[0]]


# dtypes of operands ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "number", [2, 2.0, True, torch.tensor(2), torch.tensor(2.0, dtype=torch.float64)], ids=str
)
def test_numbers_do_not_widen_tensors(compile_fn, number):
    out = compile_fn(lambda x: x * torch.as_tensor(number))(torch.tensor([1.0, 2.0], dtype=torch.float16))
    assert out.dtype == torch.float16 and values(out) == [float(number), 2 * float(number)]


@pytest.mark.parametrize("product", [torch.matmul, F.linear], ids=["matmul", "linear"])
def test_products_of_two_dtypes_are_refused(compile_fn, product):
    with pytest.raises(RuntimeError, match="dtype|scalar type"):
        compile_fn(lambda a, b: product(a, b))(torch.ones(2, 2, dtype=torch.float64), torch.ones(2, 2))


# Positions ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "view, position",
    [
        (lambda x: x.t(), 5),
        (lambda x: x.flip(0), 5),
        (lambda x: x[:, ::2], 2),
        (lambda x: x.permute(1, 0) + 1, 5),
    ],
    ids=["t", "flip", "step", "permute"],
)
def test_positions_in_views_of_what_is_written(compile_fn, view, position):
    def run(x):
        x = x.clone()
        x.mul_(-1)
        x[1, 2] = 50
        return view(x).argmax()

    x = torch.arange(6.0).view(2, 3)
    y = -x
    y[1, 2] = 50
    rows = values(view(y))
    flat = [v for row in rows for v in row]
    assert compile_fn(run)(x).item() == flat.index(max(flat))


@pytest.mark.parametrize(
    "best",
    [
        lambda x: x.argmax(-1),
        lambda x: x.argmin(-1),
        lambda x: x.max(-1).indices,
        lambda x: x.sort(dim=-1, stable=True).indices[:, 0],
    ],
    ids=["argmax", "argmin", "max", "sort"],
)
@pytest.mark.parametrize("length", [3, 17, 1000])
def test_ties_are_the_same_beside_other_results(compile_fn, best, length):
    x = torch.arange(2.0 * length).view(2, length) + 1
    alone = compile_fn(lambda x: best(x / x))(x)
    first = compile_fn(lambda x: (x / x, best(x / x)))(x)[1]
    last = compile_fn(lambda x: (best(x / x), (x / x).sum(-1)))(x)[0]
    assert values(alone) == values(first) == values(last)


# Reductions of nothing, of one, of infinities -------------------------------------------------------------
@pytest.mark.parametrize(
    "reduce, want",
    [
        (lambda x: torch.var_mean(x), [NAN, NAN]),
        (lambda x: [x.mean(), x.std()], [NAN, NAN]),
        (lambda x: [x.sum(), x.prod()], [0, 1]),
        (lambda x: [x.var(correction=0)], [NAN]),
        (lambda x: [x.all(), x.any()], [True, False]),
    ],
)
def test_reductions_of_nothing(compile_fn, reduce, want):
    assert close(values(list(compile_fn(reduce)(torch.zeros(0)))), want)


def test_extremes_of_nothing_are_refused(compile_fn):
    for reduce in (torch.max, torch.argmin, lambda x: x.amax()):
        with pytest.raises((RuntimeError, IndexError)):
            compile_fn(reduce)(torch.zeros(0))


def test_empty_rows(compile_fn):
    out = compile_fn(lambda x: (x.sum(1), x.mean(1), x.softmax(1), x.cumsum(0)))(torch.zeros(2, 0))
    assert close(values(list(out)), [[0, 0], [NAN, NAN], [[], []], [[], []]])


@pytest.mark.parametrize(
    "scan, want",
    [
        (lambda x: x.cumsum(0), 3),
        (lambda x: x.cumprod(-1), 3),
        (lambda x: x.cummax(0).values, 3),
        (lambda x: x.logcumsumexp(0), 3),
    ],
)
def test_scans_of_a_scalar(compile_fn, scan, want):
    out = compile_fn(scan)(torch.tensor(3.0))
    assert out.shape == () and out.item() == want


@pytest.mark.parametrize("n", [1, 7, 64, 5000])
def test_cumulative_sums_of_infinities(compile_fn, n):
    up = compile_fn(lambda x: x.cumsum(-1))(torch.full((2, n), INF))
    assert values(up) == [[INF] * n] * 2
    x = torch.zeros(n)
    x[n // 2] = -INF
    assert values(compile_fn(lambda x: x.cumsum(0))(x)) == [0.0] * (n // 2) + [-INF] * (n - n // 2)


def products_but_one(numbers):
    """Gradient of the sum of cumulative products, by its definition."""
    n = len(numbers)
    return [sum(math.prod(numbers[j] for j in range(k + 1) if j != i) for k in range(i, n)) for i in range(n)]


@pytest.mark.parametrize(
    "numbers", [[2.0, 3.0, -1.0], [0.0, 2.0, 5.0], [2.0, 0.0, 3.0, 0.0, 4.0], [0.0], [1.5] * 9]
)
def test_gradient_of_cumulative_products(compile_fn, numbers):
    x = torch.tensor([numbers, numbers[::-1]], dtype=torch.float64, requires_grad=True)
    compile_fn(lambda x: x.cumprod(-1))(x).sum().backward()
    assert close(values(x.grad), [products_but_one(numbers), products_but_one(numbers[::-1])], 1e-12)


# softmax at its edges -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "row, want",
    [
        ([1e30, -1e30, 0.0], [1, 0, 0]),
        ([INF, 1.0, 2.0], [NAN] * 3),
        ([-INF, -INF], [NAN, NAN]),
        ([-INF, 3.0], [0, 1]),
        ([NAN, 1.0], [NAN, NAN]),
        ([-1e38, -1e38], [0.5, 0.5]),
    ],
)
def test_softmax_of_extremes(compile_fn, row, want):
    assert close(values(compile_fn(lambda x: torch.softmax(x, -1))(torch.tensor(row))), want)
    assert close(values(compile_fn(lambda x: torch.log_softmax(x, 0).exp())(torch.tensor(row))), want)


def test_attention_of_a_row_that_sees_nothing(compile_fn):
    q, mask = torch.ones(1, 2, 4), torch.tensor([[True, True], [False, False]])
    v = torch.tensor([[[2.0], [4.0]]])
    out = compile_fn(lambda q, v, m: F.scaled_dot_product_attention(q, q, v, attn_mask=m))(q, v, mask)
    assert values(out) == [[[3], [0]]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.log(torch.full((2, 2), -1.0)),
        lambda: torch.zeros(2, 2) / 0,
        lambda: torch.full((2, 2), INF) - torch.full((2, 2), INF),
    ],
)
@pytest.mark.parametrize(
    "use",
    [lambda x: x.softmax(-1), lambda x: x.relu() + x, lambda x: x.max(1).values],
    ids=["softmax", "relu", "max"],
)
def test_constants_that_are_nan(compile_fn, make, use):
    assert all(math.isnan(v) for v in torch.flatten(compile_fn(lambda: use(make()))()).tolist())
