"""Operators and calls on tensors and numbers."""
import math
import operator

import flambeau as torch
from program import program


def one():
    return (torch.tensor([1.0, -2.0, 3.0]),)


def one_other_shape():
    return (torch.tensor([[0.5, 2.0], [4.0, -1.0]]),)


def two():
    return torch.tensor([1.0, 2.0, 4.0]), torch.tensor([3.0, -1.0, 0.5])


@program(one, one_other_shape)
def polynomial(x):
    return 3 * x**2 - 2 * x + 1


@program(two, lambda: (torch.ones(2, 1), torch.ones(1, 3)))
def all_binary_operators(a, b):
    return a + b, a - b, a * b, a / b, a // b, a % b, a**2


@program(two)
def reversed_operators(a, b):
    return 1 + a, 1 - a, 2 * b, 2 / a, 7 // a, 7 % a, 2**b


@program(lambda: (torch.tensor([1, 2, 4]), torch.tensor([3, 3, 1])))
def bitwise_operators(a, b):
    return a & b, a | b, a ^ b, a << b, b >> a, ~a, a & 1


@program(two)
def comparisons(a, b):
    return a < b, a <= b, a > b, a >= b, a == b, a != b, (a > 0) & (b > 0)


@program(one)
def unary_operators(x):
    return -x, +x, abs(x), ~(x > 0), round(x / 3)


@program(lambda: (torch.ones(2, 3), torch.full((3, 2), 2.0)))
def matrix_product(a, b):
    return a @ b, torch.matmul(b, a), (a @ b).T


@program(lambda: (torch.ones(3), 2), lambda: (torch.ones(3), 5), lambda: (torch.ones(3), -1))
def integer_argument(x, n):
    return x * n + n // 2, n % 3


@program(lambda: (torch.ones(3), 0.5), lambda: (torch.ones(3), 0.25), lambda: (torch.ones(3), float("nan")))
def float_argument(x, scale):
    return x * scale, scale * 2, scale == scale


@program(lambda: (torch.ones(3), True), lambda: (torch.ones(3), False), lambda: (torch.ones(3), 1))
def bool_argument(x, flag):
    return x + flag, x if flag else -x, not flag, type(flag).__name__


@program(lambda: (torch.ones(3), None), lambda: (torch.ones(3), torch.tensor(2.0)))
def none_argument(x, scale):
    return x if scale is None else x * scale


@program(lambda: (torch.ones(3), "sum"), lambda: (torch.ones(3), "mean"), lambda: (torch.ones(3), "no such"))
def string_argument(x, reduction):
    if reduction == "sum":
        return x.sum()
    if reduction == "mean":
        return x.mean()
    raise ValueError(f"unknown reduction {reduction!r}")


@program(lambda: (torch.tensor([1.5]), 2 + 1j))
def complex_argument(x, c):
    return x * c.real, x + c.imag, c * c, abs(c)


@program(lambda: (torch.ones(2), 7, 2))
def integer_arithmetic(x, a, b):
    return (
        x * (a + b),
        a - b,
        a * b,
        a / b,
        a // b,
        a % b,
        a**b,
        -a,
        +a,
        ~a,
        a & b,
        a | b,
        a ^ b,
        a << b,
        a >> b,
        divmod(a, b),
    )


@program(lambda: (7.5, -2.0), lambda: (-7.5, 2.0))
def float_arithmetic(a, b):
    return (
        a + b,
        a - b,
        a * b,
        a / b,
        a // b,
        a % b,
        abs(b) ** 0.5,
        divmod(a, b),
        round(a),
        int(a),
        math.floor(a),
        a.is_integer(),
    )


@program(lambda: (torch.ones(2), 2**62, 3))
def big_integers(x, a, b):
    big = a * a * b
    return x + big % 1000, big, big >> 100, big.bit_length(), hash(big)


@program(lambda: (torch.ones(2), 5, 0))
def division_by_zero(x, a, b):
    y = x * 2
    return y, a // b


@program(lambda: (torch.tensor([5.0, 1.0]), 3))
def compare_chain(x, n):
    return 1 < n < 5, 1 < n > 2 != 4, 0 < n < 2, (x > n) | (x < 2)


@program(lambda: (torch.ones(3), 3, "a", None, [1]))
def boolean_operators(x, n, s, none, items):
    return n and s, none or n, not items, none and n, s or n, x * (n or 7), [] or {} or "last"


@program(lambda: (torch.ones(3), 4), lambda: (torch.ones(3), 5))
def conditional_expression(x, n):
    y = x * 2 if n % 2 == 0 else x * 3
    return y + (1 if n > 4 else 0)


@program(lambda: (torch.ones(3),))
def augmented_assignment(x):
    y = x + 1
    y += 2
    y *= 3
    y -= x
    y /= 2
    y **= 2
    n = 7
    n //= 2
    n <<= 3
    n |= 1
    n %= 9
    return y, n


@program(lambda: (torch.arange(6.0).reshape(2, 3),))
def method_chain(x):
    return x.add(1).mul(2).relu().sum(dim=0).sqrt().unsqueeze(1)


@program(lambda: (torch.arange(6.0).reshape(2, 3), 0), lambda: (torch.arange(6.0).reshape(2, 3), 1))
def dimension_argument(x, dim):
    return x.sum(dim), x.mean(dim=dim, keepdim=True), x.max(dim).values, torch.cat([x, x], dim)


@program(two)
def operator_module(a, b):
    return (
        operator.add(a, b),
        operator.mul(a, 2),
        operator.neg(b),
        operator.getitem(a, 1),
        operator.truediv(a, b),
    )


@program(lambda: (torch.ones(3), 9), lambda: (torch.ones(3), 16))
def math_on_integers(x, n):
    return (
        x * math.sqrt(n),
        math.isqrt(n),
        math.gcd(n, 6),
        math.ceil(n / 2),
        math.prod([n, 2]),
        math.log2(n),
        math.pi,
    )


@program(lambda: (torch.ones(3), 1, 2.0))
def builtin_numbers(x, a, b):
    return (
        x * max(a, b),
        min(a, b, 0),
        abs(-a),
        pow(a + 1, 3),
        pow(3, 4, 5),
        round(b / 3, 2),
        int("7"),
        float("1.5"),
        bool(a),
        hex(255),
    )


@program(lambda: (torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.int32)))
def dtype_promotion(a, b):
    return a + b, b / 2, b + 1.5, b * True, (a > 0) + b, b.to(torch.int8) + b


@program(
    lambda: (
        torch.tensor([1.0, 2.0, 3.0], requires_grad=True),
        torch.tensor([0.5, 1.5, -1.0], requires_grad=True),
    )
)
def gradients_of_two(a, b):
    return (a * b).sin() + a.exp() / (1 + b * b)


@program(
    lambda: (torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(2)),
    lambda: (torch.tensor([1.0, 2.0]), torch.ones(2)),
    lambda: (torch.tensor([1.0, 2.0]), torch.ones(2, requires_grad=True)),
)
def gradients_of_some(a, b):
    return a * b + 1, a.detach() * 2, b


@program(
    lambda: (torch.ones(3), torch.ones(3, dtype=torch.float64)),
    lambda: (torch.ones(3), torch.ones(3, dtype=torch.int64)),
)
def dtype_changes(a, b):
    return (a + b).dtype, b.dtype == torch.float64, a.to(b.dtype)


@program(lambda: (torch.ones(2), 3), change=lambda x, n: x.requires_grad_())
def requires_grad_changes(x, n):
    return x * n, x.requires_grad
