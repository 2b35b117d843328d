"""match statements, and assignment expressions."""
import dataclasses

import flambeau as torch
from program import program


def with_value(*values):
    return [lambda v=v: (torch.tensor([1.0, 2.0]), v) for v in values]


@program(*with_value(1, "relu", None, 2.5, True, "none"))
def literals(x, v):
    match v:
        case 1:
            return x + 1
        case "relu":
            return x.relu()
        case None:
            return x
        case 2.5:
            return x * v
        case _:
            return x, "default"


@program(*with_value([], [5], [1, 2], (1, 2, 3, 4), "ab", {"a": 1}))
def sequences(x, v):
    match v:
        case []:
            return x
        case [n]:
            return x * n
        case [a, b]:
            return x + a - b
        case [first, *middle, last]:
            return x + first + last, middle
        case _:
            return -x


@program(*with_value({"op": "add", "n": 2}, {"op": "mul", "n": 3, "extra": [1]}, {"n": 1}, {}, []))
def mappings(x, v):
    match v:
        case {"op": "add", "n": n}:
            return x + n
        case {"op": op, "n": n, **rest}:
            return x * n, op, rest
        case {"n": int(n)}:
            return x - n
        case {}:
            return x, "empty"
    return x, "no match"


@dataclasses.dataclass
class Conv:
    width: int
    stride: int = 1


class Linear:
    __match_args__ = ("features",)

    def __init__(self, features, bias=True):
        self.features, self.bias = features, bias


@program(
    lambda: (torch.ones(2), Conv(3)),
    lambda: (torch.ones(2), Conv(3, 2)),
    lambda: (torch.ones(2), Linear(5)),
    lambda: (torch.ones(2), Linear(6, bias=False)),
    lambda: (torch.ones(2), 7),
    lambda: (torch.ones(2), "seven"),
)
def classes(x, layer):
    match layer:
        case Conv(width, 1):
            return x * width
        case Conv(stride=s):
            return x / s
        case Linear(features, bias=True):
            return x + features
        case Linear():
            return x - layer.features
        case int(n):
            return x**n
        case object():
            return x, type(layer).__name__


@program(*with_value(1, 2, 3, 10, 100))
def alternatives_and_guards(x, v):
    match v:
        case 1 | 2:
            x = x + 1
        case n if n > 50:
            x = x * n
        case (3 | 10) as n if n % 2:
            x = x - n
        case n:
            x = x, n
    return x


@program(*with_value(["move", (1, 2)], ["move", (0, 5)], ["stop"], ["turn", {"by": 90}], ["turn", {}]))
def nested_patterns(x, v):
    match v:
        case ["move", (0, y)]:
            return x + y
        case ["move", (dx, dy)]:
            return x * dx * dy
        case ["turn", {"by": angle}]:
            return x * angle
        case ["stop" | "turn", *rest]:
            return x, rest


class Kind:
    SMALL = "s"
    LARGE = "l"


@program(*with_value("s", "l", "x"))
def values_by_name(x, v):
    match v:
        case Kind.SMALL:
            return x
        case Kind.LARGE:
            return x * 100
        case str(other):
            return x, other


@program(lambda: (torch.ones(2, 3),), lambda: (torch.ones(4),), lambda: (torch.ones(1, 2, 3),))
def on_a_shape(x):
    match tuple(x.shape):
        case (n,):
            return x * n
        case (rows, columns):
            return x.reshape(columns, rows)
        case (1, *rest):
            return x.reshape(rest)


@program(*with_value([1, 2], [3]))
def match_in_a_loop(x, v):
    for item in [*v, "end", (1, 2)]:
        match item:
            case int():
                x = x + item
            case (a, b):
                x = x * a * b
            case "end":
                continue
    return x


@program(*with_value(0, 4))
def walrus(x, v):
    if (n := v * 2) > 3:
        x = x + n
    while (v := v - 1) > 0:
        x = x * (m := v + 1)
        n += m
    return x, n, v, (y := x.sum()) + y


@program(lambda: (torch.ones(2), {"a": 1}))
def walrus_in_conditions(x, table):
    if (value := table.get("a")) is not None and (other := value + 1):
        return x * value + other
    return x
