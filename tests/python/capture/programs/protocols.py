"""Special methods: containers, iterators, operators, comparisons, conversions."""
import flambeau as torch
from program import program


def x2():
    return (torch.tensor([1.0, 2.0]),)


class Grid:
    """A container by its special methods."""

    def __init__(self, values):
        self.values = list(values)

    def __getitem__(self, i):
        return Grid(self.values[i]) if isinstance(i, slice) else self.values[i]

    def __setitem__(self, i, value):
        self.values[i] = value

    def __delitem__(self, i):
        del self.values[i]

    def __len__(self):
        return len(self.values)

    def __contains__(self, value):
        return any(v is value for v in self.values)

    def __iter__(self):
        return iter(self.values)

    def __reversed__(self):
        return reversed(self.values)

    def __bool__(self):
        return len(self.values) > 2


@program(
    lambda: (torch.ones(2), Grid([1, 2, 3])),
    lambda: (torch.ones(2), Grid([])),
    lambda: (torch.ones(2), Grid([4, 5])),
)
def container_protocol(x, g):
    y = x + 1 if g else x - 1
    for value in g:
        y = y * value
    if len(g) > 1:
        g[0] = x
        del g[1]
    return y, x in g, 7 in g, len(g), list(reversed(g)), [*g[0:1]], not g


class OldIteration:
    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return i * 10


@program(x2)
def iteration_by_getitem(x):
    return [x + v for v in OldIteration()], 20 in OldIteration(), list(OldIteration())


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


@program(lambda: (torch.ones(2), Countdown(5)))
def iterator_protocol(x, c):
    first = next(c)
    for n in c:
        x = x + n
        if n == 2:
            break
    return x, first, list(c), next(c, "done")


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y) if isinstance(other, Vector) else NotImplemented

    def __radd__(self, other):
        return self if other == 0 else NotImplemented

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    __rmul__ = __mul__

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y

    def __neg__(self):
        return Vector(-self.x, -self.y)

    def __iadd__(self, other):
        self.x = self.x + other.x
        return self

    def __eq__(self, other):
        return isinstance(other, Vector) and self.y == other.y

    def __hash__(self):
        return hash(self.y)

    def __lt__(self, other):
        return self.y < other.y

    def __call__(self, k):
        return self.x**k

    def __index__(self):
        return self.y

    def __float__(self):
        return float(self.y)


@program(lambda: (Vector(torch.ones(2), 1), Vector(torch.ones(2) * 2, 2)))
def operator_methods(a, b):
    c = 2 * (a + b) * 3
    d = -a
    a += b
    return c, d, a, a @ b, sum([a, b]), b(3)


@program(lambda: (Vector(torch.ones(2), 1), Vector(torch.ones(2) * 2, 2)))
def comparison_methods(a, b):
    twin = Vector(0, 1)
    table = {a: "first"}
    return (
        a == twin,
        a != b,
        a == 5,
        a < b,
        b > a,
        sorted([b, a])[0] is a,
        table[twin],
        twin in [a],
        {a, twin} == {a},
        hash(b),
    )


@program(lambda: (torch.arange(4.0), Vector(None, 2)))
def conversion_methods(x, v):
    return x[v], [1, 2, 3][v], float(v), x * float(v), range(v)[1], "abc"[v:]


@program(lambda: (Vector(torch.ones(2), 1),))
def unsupported_operand(v):
    y = v.x + 1
    return y, v + 5
