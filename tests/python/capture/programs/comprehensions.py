"""List, dict, set and generator comprehensions, and the built-in functions that consume them."""
import flambeau as torch
from program import program


def x_and_list():
    return torch.tensor([1.0, 2.0]), [3, 1, 2]


def x_and_longer_list():
    return torch.tensor([1.0, 2.0]), [5, 6, 7, 8]


@program(x_and_list, x_and_longer_list)
def list_comprehension(x, items):
    return [x * i for i in items]


@program(x_and_list, x_and_longer_list)
def filtered(x, items):
    return [x + i for i in items if i % 2 if i > 1]


@program(x_and_list)
def with_condition_inside(x, items):
    return [x * i if i > 1 else x for i in items]


@program(x_and_list)
def dict_comprehension(x, items):
    return {f"k{i}": x * i for i in items}


@program(x_and_list)
def set_comprehension(x, items):
    kinds = {i % 2 for i in items}
    return x * len(kinds), kinds


@program(x_and_list)
def two_loops(x, items):
    return sum([x * i * j for i in items for j in range(i)])


@program(x_and_list)
def nested(x, items):
    return [[x + i * j for j in items] for i in items]


@program(x_and_list)
def of_a_comprehension(x, items):
    return [y.sum() for y in [x * i for i in items if i != 1]]


@program(x_and_list)
def variable_does_not_leak(x, items):
    i = 10
    squares = [i * i for i in items]
    return x * i, squares


@program(x_and_list)
def uses_closure(x, items):
    scale = len(items)

    def scaled():
        return [x * scale + i for i in items]

    return scaled()


@program(x_and_list)
def lambdas_of_a_loop(x, items):
    late = [lambda: x * i for i in items]
    early = [lambda i=i: x * i for i in items]
    return [f() for f in late], [f() for f in early]


@program(x_and_list)
def sum_of_generator(x, items):
    return sum(x * i for i in items)


@program(x_and_list, x_and_longer_list)
def any_and_all(x, items):
    return x if any(i > 4 for i in items) else -x, all(i > 0 for i in items), any(()), all(())


@program(x_and_list)
def any_stops_early(x, items):
    seen = []

    def check(i):
        seen.append(i)
        return i == 1

    found = any(check(i) for i in items)
    return x + found, seen


@program(x_and_list)
def tuple_of_generator(x, items):
    return (
        tuple(x + i for i in items),
        list(i for i in items),
        set(i for i in items),
        dict((i, x) for i in items),
    )


@program(x_and_list)
def max_of_generator(x, items):
    return (
        x * max(i * 2 for i in items),
        min((len(str(i)) for i in items), default=0),
        max((i for i in []), default="none"),
    )


@program(x_and_list)
def stack_of_comprehension(x, items):
    return torch.stack([x * i for i in items]), torch.cat(tuple(x for _ in items))


@program(x_and_list)
def unpacks_pairs(x, items):
    pairs = [(i, x * i) for i in items]
    return [a * b for a, b in pairs], {a: b for a, b in pairs}


@program(x_and_list)
def walrus_inside(x, items):
    return [y for i in items if (y := i * 2) > 3], x * y


@program(x_and_list)
def lazy_generator(x, items):
    g = (x * i for i in items)
    first = next(g)
    items.append(100)
    return first, list(g)


@program(x_and_list)
def generator_is_returned(x, items):
    return (i * 2 for i in items), x + 1


@program(x_and_list)
def joins_strings(x, items):
    return ", ".join(f"{i}" for i in items), x * len("-".join(str(i) for i in range(3)))


@program(lambda: (torch.arange(6.0).reshape(2, 3),), lambda: (torch.arange(8.0).reshape(4, 2),))
def over_shape_and_rows(x):
    return [n + 1 for n in x.shape], [row.sum() for row in x], [x[:, j] for j in range(x.size(1))]


@program(lambda: (torch.ones(2), {"a": 1, "b": 2}))
def inverts_a_dict(x, table):
    return (
        {v: k for k, v in table.items()},
        [x * v for v in table.values()],
        sorted(k for k in table if k != "a"),
    )


@program(x_and_list)
def raises_inside(x, items):
    return [x / (10 // (i - 1)) for i in items]


class Matrix:
    def __init__(self, rows):
        self.rows = rows


@program(lambda: (torch.ones(2), Matrix([[1, 2], [3, 4]])))
def transposes(x, m):
    m.rows = [[row[j] for row in m.rows] for j in range(2)]
    return x * sum(sum(row) for row in m.rows), m.rows


@program(x_and_list)
def comprehension_with_side_effects(x, items):
    log = []
    [log.append(x * i) for i in items]
    return log, [items.pop() for _ in range(2)]


@program(x_and_list)
def inside_a_loop(x, items):
    total = x
    for n in range(3):
        total = total + sum([i + n for i in items])
        items = [i + 1 for i in items if i > n]
    return total, items
