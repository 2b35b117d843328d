"""Closures, defaults, every kind of parameter, lambdas, decorators, partial, recursion."""
import functools

import flambeau as torch
from program import program


def x2():
    return (torch.tensor([1.0, 2.0]),)


def x2_n():
    return torch.tensor([1.0, 2.0]), 3


@program(x2)
def inner_function(x):
    def double(y):
        return y * 2

    return double(double(x))


@program(x2_n, lambda: (torch.tensor([1.0, 2.0]), 5))
def closure_reads(x, n):
    def scale(y):
        return y * n + x

    n = n + 1
    return scale(x)


@program(x2_n)
def closure_writes(x, n):
    count = 0

    def step(y):
        nonlocal count, n
        count += 1
        n *= 2
        return y * n

    return step(step(x)), count, n


@program(x2)
def closure_is_returned(x):
    total = x.sum()

    def add(y):
        return y + total

    return add, add(x)


@program(x2)
def two_closures_share_a_cell(x):
    value = [x]
    state = 0

    def put(y):
        nonlocal state
        state += 1
        value.append(y)

    def get():
        return value[state]

    put(x * 2)
    return get(), state, get


def make_counter(start):
    count = start

    def counter(x):
        nonlocal count
        count += 1
        return x + count

    return counter


def set_cell(x, f):
    f.__closure__[0].cell_contents = 100


@program(lambda: (torch.ones(2), make_counter(0)), lambda: (torch.ones(2), make_counter(10)), change=set_cell)
def closure_cell_store(x, f):
    return f(f(x))


def make_list_keeper():
    kept = []

    def keep(x):
        kept.append(x)
        return x * len(kept)

    return keep


@program(lambda: (torch.ones(2), make_list_keeper()))
def closure_list_append(x, f):
    return f(x), f(x * 2)


@program(x2_n)
def nested_three_deep(x, n):
    def outer():
        def middle():
            def inner():
                nonlocal n
                n += 1
                return x * n

            return inner() + 1

        return middle() * 2

    return outer(), n


@program(x2)
def lambdas(x):
    square = lambda y: y * y  # noqa: E731
    return square(x), (lambda a, b=3: a * b)(x), [f(x) for f in (lambda y: y + 1, lambda y: y - 1)]


def scaled(x, factor=2.0, *, shift=1):
    return x * factor + shift


def set_defaults(*_):
    scaled.__defaults__ = (10.0,)
    scaled.__kwdefaults__["shift"] = 5


@program(x2, change=set_defaults)
def defaults(x):
    return scaled(x), scaled(x, 3), scaled(x, shift=0), scaled(factor=1, x=x)


def everything(a, b=2, /, c=3, *rest, d, e=5, **more):
    return a * b + c + sum(rest) + d + e, rest, more


@program(x2)
def every_kind_of_parameter(x):
    return everything(x, d=1), everything(x, 4, 5, 6, 7, d=8, e=9, f=10), everything(x, c=1, d=2, a=3)


@program(x2)
def star_arguments(x):
    args, kwargs = (x, 1), {"d": 2, "z": x}
    return everything(*args, **kwargs), everything(*[x], *(1, 2, 3), d=0, **{"k": 1}, **{})


@program(lambda: (torch.ones(2), (1, 2), {"d": 3}), lambda: (torch.ones(2), (), {"d": 3, "e": 4}))
def star_arguments_from_outside(x, args, kwargs):
    return everything(x, *args, **kwargs)


@program(x2)
def missing_argument(x):
    y = x + 1
    return everything(y)


@program(x2)
def unexpected_argument(x):
    return scaled(x, no_such=1)


@program(x2)
def too_many_arguments(x):
    return scaled(x, 1, 2, 3)


def keep_default(x, seen=[]):
    seen.append(float(len(seen)))
    return x + seen[-1], seen


@program(x2)
def mutable_default(x):
    return keep_default(x)[0], keep_default(x)[0]


def twice(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(f(*args, **kwargs), **kwargs)

    return wrapper


@twice
def plus(x, n=1):
    """Adds."""
    return x + n


@program(x2)
def decorated(x):
    return plus(x), plus(x, n=5), plus.__name__, plus.__doc__


def with_argument(times):
    def decorate(f):
        def wrapper(x):
            for _ in range(times):
                x = f(x)
            return x

        return wrapper

    return decorate


@program(x2_n)
def decorated_inside(x, n):
    @with_argument(n)
    def step(y):
        return y * 2

    return step(x)


@program(x2)
def partials(x):
    f = functools.partial(scaled, factor=4)
    g = functools.partial(f, shift=x)
    return f(x), g(x), g(x, factor=1), g.keywords["factor"], f.func is scaled


@program(
    lambda: (torch.ones(2), functools.partial(scaled, factor=4)),
    lambda: (torch.ones(2), functools.partial(scaled, factor=8)),
)
def partial_argument(x, f):
    return f(x, shift=2)


@program(x2_n, lambda: (torch.tensor([1.0, 2.0]), 6))
def recursion(x, n):
    def factorial(k):
        return 1 if k <= 1 else k * factorial(k - 1)

    return x * factorial(n)


@program(lambda: (torch.ones(1), [1, [2, [3, []]], (4, [5])]))
def recursion_over_a_tree(x, tree):
    def total(node):
        return sum(total(child) for child in node) if isinstance(node, (list, tuple)) else node

    def map_tree(f, node):
        return [map_tree(f, child) for child in node] if isinstance(node, list) else f(node)

    return x * total(tree), map_tree(str, tree[:2])


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


@program(x2_n)
def mutual_recursion(x, n):
    return x if is_even(n) else -x


@program(lambda: (torch.ones(1), 200))
def deep_recursion(x, n):
    def down(k):
        return x if k == 0 else down(k - 1) + 1

    return down(n)


@program(x2)
def endless_recursion(x):
    def forever(y):
        return forever(y)

    try:
        forever(x)
    except RecursionError:
        return x + 1


@functools.lru_cache(maxsize=None)
def cached(n):
    return n * n


@program(x2_n)
def lru_cache(x, n):
    return x * cached(n) + cached(n), cached.cache_info().misses


@program(x2)
def function_attributes(x):
    def f(y):
        f.calls += 1
        return y * f.calls

    f.calls = 0
    return f(x), f(x), f.calls


@program(
    lambda: (torch.ones(2), lambda y: y * 2), lambda: (torch.ones(2), torch.exp), lambda: (torch.ones(2), abs)
)
def function_argument(x, f):
    return f(x) + 1


@program(x2)
def functions_in_a_table(x):
    table = {"double": lambda y: y * 2, "exp": torch.exp, "sum": torch.Tensor.sum}
    return [f(x) for f in table.values()], table["double"](x)


def compose(*functions):
    return functools.reduce(lambda f, g: lambda y: g(f(y)), functions)


@program(x2)
def composition(x):
    return compose(torch.exp, torch.log, lambda y: y + 1)(x)
