"""Generators, and iteration by itertools and the built-in functions."""
import flambeau as torch
from program import program


def x2():
    return (torch.tensor([1.0, 2.0]),)


def x_and_n():
    return torch.tensor([1.0, 2.0]), 3


def multiples(x, n):
    for i in range(n):
        yield x * i


@program(x_and_n, lambda: (torch.ones(2), 5))
def consumes_a_generator(x, n):
    total = 0
    for y in multiples(x, n):
        total = total + y
    return total


@program(x_and_n)
def consumes_in_one_call(x, n):
    return sum(multiples(x, n)), list(multiples(x, n)), torch.stack(tuple(multiples(x, n)))


@program(x_and_n)
def generator_of_closure(x, n):
    def steps():
        nonlocal n
        while n > 0:
            n -= 1
            yield x + n

    return list(steps()), n


@program(x_and_n)
def yield_from(x, n):
    def inner():
        value = yield from multiples(x, n)
        yield value
        yield from [1, 2]

    return list(inner())


@program(x2)
def value_of_return(x):
    def inner():
        yield x
        return "done"

    def outer():
        result = yield from inner()
        yield result

    return list(outer())


@program(x2)
def send(x):
    def accumulate():
        total = x
        while True:
            received = yield total
            if received is None:
                return
            total = total + received

    g = accumulate()
    next(g)
    a = g.send(1)
    b = g.send(x)
    try:
        g.send(None)
    except StopIteration:
        return a, b, "stopped"


@program(x2)
def close_runs_finally(x):
    log = []

    def g():
        try:
            yield x
            yield x * 2
        finally:
            log.append("closed")

    it = g()
    first = next(it)
    it.close()
    return first, log, list(it)


@program(x2)
def throw(x):
    def g():
        try:
            yield x
        except ValueError as error:
            yield f"caught {error}"

    it = g()
    next(it)
    return it.throw(ValueError("thrown")), x


@program(x2)
def half_used(x):
    def g():
        for i in range(5):
            yield x + i

    it = g()
    a = next(it)
    b = next(it)
    return a, b, list(it)


@program(x2)
def generator_is_returned(x):
    it = multiples(x, 4)
    return next(it), it


@program(lambda: (torch.ones(2), multiples(torch.ones(2), 6)))
def generator_argument(x, g):
    return x + next(g), next(g) * 2


@program(x2)
def body_runs_late(x):
    log = []

    def g():
        log.append("started")
        yield x

    it = g()
    before = len(log)
    y = next(it)
    return before, len(log), y


@program(x2)
def error_inside_a_generator(x):
    def g():
        yield x
        raise KeyError("in the generator")

    return [y * 2 for y in g()]


@program(x2)
def breaks_out(x):
    seen = []

    def naturals():
        n = 0
        while True:
            seen.append(n)
            yield n
            n += 1

    for n in naturals():
        if n * n > 10:
            break
        x = x + n
    return x, seen


@program(x2)
def two_at_once(x):
    def g(k):
        for i in range(3):
            yield x * i + k

    a, b = g(0), g(10)
    return [next(a), next(b), next(a), next(b)], [p + q for p, q in zip(a, b)]


@program(x2)
def recursive_generator(x):
    def walk(tree):
        for node in tree:
            if isinstance(node, list):
                yield from walk(node)
            else:
                yield node

    return x * sum(walk([1, [2, [3], 4], []])), list(walk([[x]]))


@program(x2)
def pipeline(x):
    def numbers():
        yield from range(6)

    def even(source):
        return (n for n in source if n % 2 == 0)

    def scaled(source):
        for n in source:
            yield x * n

    return list(scaled(even(numbers())))


class Tree:
    def __init__(self, value, *children):
        self.value, self.children = value, children

    def __iter__(self):
        yield self.value
        for child in self.children:
            yield from child


@program(lambda: (torch.ones(2), Tree(1, Tree(2), Tree(3, Tree(4)))))
def generator_method(x, tree):
    return [x * v for v in tree], max(tree), 3 in tree


@program(lambda: (torch.ones(2), [3, 1, 2], ["a", "b", "c"]))
def zip_and_enumerate(x, numbers, letters):
    for i, (n, letter) in enumerate(zip(numbers, letters), start=1):
        x = x + n * i + len(letter)
    return x, list(zip(*zip(numbers, letters))), list(zip(letters, range(10))), dict(enumerate(letters))


@program(lambda: (torch.ones(2), [1, 2], [1, 2, 3]))
def strict_zip(x, a, b):
    return [x * i * j for i, j in zip(a, b, strict=True)]


@program(lambda: (torch.ones(2), [3, 1, 2]))
def map_and_filter(x, numbers):
    return (
        list(map(lambda n: x * n, numbers)),
        list(filter(lambda n: n > 1, numbers)),
        list(filter(None, [0, x.dim(), 2])),
        list(map(lambda a, b: a + b, numbers, [10, 20, 30])),
        sum(map(len, ["ab", "c"])),
    )


@program(lambda: (torch.ones(2), [3, 1, 2], {"b": 1, "a": 2}))
def sorting_functions(x, numbers, table):
    return (
        sorted(numbers),
        sorted(table),
        sorted(table.items(), key=lambda pair: pair[1]),
        sorted(numbers, key=lambda n: -n, reverse=True),
        min(numbers, key=lambda n: abs(n - 2)),
        max(table, key=table.get),
        min(3, 1),
        max([], default=x),
        sum(numbers, 10),
        list(reversed(numbers)),
        reversed(range(3))[0] if hasattr(range, "no") else None,
    )


@program(lambda: (torch.ones(2), iter([1, 2, 3, 4, 5])))
def iterator_functions(x, it):
    a = next(it)
    pairs = list(zip(it, it))
    return x * a, pairs, next(it, "end"), list(iter(lambda: len(pairs), 2)), iter([1]).__next__()


@program(lambda: (torch.ones(2), map(abs, [-1, -2, -3]), enumerate("abc")))
def lazy_arguments(x, m, e):
    return x * next(m), next(e), m, e


@program(x2)
def lazy_map_is_returned(x):
    log = []

    def f(n):
        log.append(n)
        return n + 1

    m = map(f, [1, 2, 3])
    return next(m) * x, m, log


@program(x2)
def dropped_in_the_middle(x):
    log = []

    def g():
        try:
            yield x
            yield x * 2
        finally:
            log.append("closed")

    for first in g():
        break
    y = first + len(log)
    rest = g()
    next(rest)
    return y, log[:], len(log)
