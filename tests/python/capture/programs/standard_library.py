"""itertools, functools, operator, math, copy, typing, random and others of the standard library."""
import bisect
import copy
import functools
import heapq
import inspect
import itertools
import math
import operator
import types
import typing
import weakref

import flambeau as torch
from program import program


def x2():
    return (torch.tensor([1.0, 2.0]),)


def x_and_list():
    return torch.tensor([1.0, 2.0]), [3, 1, 2]


@program(x_and_list)
def itertools_chains(x, items):
    both = itertools.chain(items, (7, 8))
    return (
        [x * n for n in both],
        list(itertools.chain.from_iterable([[1], [2, 3]])),
        sum(itertools.repeat(2, 3)),
        x + 0,
    )


@program(x_and_list)
def itertools_slices(x, items):
    naturals = itertools.count(1)
    return (
        list(itertools.islice(naturals, 3)),
        next(naturals),
        list(itertools.islice(items, 1, None)),
        list(itertools.takewhile(lambda n: n > 2, items)),
        list(itertools.dropwhile(lambda n: n > 2, items)),
        [next(c) for c in [itertools.cycle("ab")] * 3],
        x * 2,
    )


@program(x_and_list)
def itertools_products(x, items):
    return (
        [x * a * b for a, b in itertools.product(items, [1, 2])],
        list(itertools.permutations(items, 2))[:2],
        list(itertools.combinations(items, 2)),
        list(itertools.pairwise(items)),
        list(itertools.zip_longest(items, "ab", fillvalue="-")),
    )


@program(x_and_list)
def itertools_accumulation(x, items):
    groups = {key: list(group) for key, group in itertools.groupby([1, 1, 2, 3, 3], lambda n: n % 2)}
    return (
        list(itertools.accumulate(items)),
        list(itertools.accumulate([x] * 3, operator.mul)),
        groups,
        list(itertools.starmap(pow, [(2, 3)])),
        list(itertools.compress("abc", [1, 0, 1])),
        list(itertools.filterfalse(None, [0, 1])),
    )


@program(x_and_list)
def itertools_tee(x, items):
    a, b = itertools.tee(iter(items))
    return [x * n for n in a], sum(b), itertools.chain(items)


@program(x_and_list)
def functools_reduce(x, items):
    return (
        functools.reduce(lambda a, b: a * b, items, x),
        functools.reduce(operator.add, [[1], [2]]),
        functools.reduce(max, items),
    )


@functools.singledispatch
def describe(thing):
    return "thing"


@describe.register
def _(thing: int):
    return f"int {thing}"


@describe.register(list)
def _of_list(thing):
    return [describe(item) for item in thing]


@program(x_and_list)
def functools_singledispatch(x, items):
    return describe(items), describe("s"), x * len(describe(items))


class Data:
    def __init__(self, n):
        self.n, self.made = n, 0

    @functools.cached_property
    def table(self):
        self.made += 1
        return torch.full((2,), float(self.n))


@program(lambda: (torch.ones(2), Data(3)))
def functools_cached_property(x, data):
    return x * data.table + data.table, data.made, "table" in vars(data)


@program(x_and_list)
def functools_others(x, items):
    by_last_digit = functools.cmp_to_key(lambda a, b: a % 3 - b % 3)
    plus = functools.partial(operator.add, 10)
    return sorted(items, key=by_last_digit), plus(x), list(map(plus, items)), functools.partial(plus, 1)()


@program(x_and_list)
def operator_getters(x, items):
    pairs = [(2, "b"), (1, "a")]
    return (
        sorted(pairs, key=operator.itemgetter(0)),
        operator.attrgetter("shape")(x),
        operator.methodcaller("sum")(x),
        operator.itemgetter(0, 2)(items),
        operator.contains(items, 1),
        operator.not_(items),
        operator.is_(x, x),
        operator.index(5),
        operator.attrgetter("dtype.is_floating_point")(x),
    )


@program(lambda: (torch.ones(2), 16, 2.5))
def math_functions(x, n, f):
    return (
        x * math.sqrt(n),
        math.floor(f),
        math.ceil(f),
        math.log(n, 2),
        math.exp(0),
        math.isnan(f),
        math.isinf(math.inf),
        math.cos(0.0),
        math.prod([2, n]),
        math.comb(5, 2),
        math.copysign(1, -f),
        math.fsum([0.1] * 10),
        math.trunc(-f),
        math.hypot(3, 4),
        math.tau,
        math.isclose(f, 2.5),
        math.lcm(4, 6),
    )


@program(x2)
def math_domain_error(x):
    y = x + 1
    return y, math.sqrt(-1)


@program(lambda: (torch.ones(2), {"a": [1, {"b": 2}]}))
def copies(x, tree):
    shallow, deep = copy.copy(tree), copy.deepcopy(tree)
    shallow["a"][1]["b"] = x
    deep["a"].append("deep")
    return shallow["a"] is tree["a"], deep, x * 2


@program(lambda: (torch.ones(2), Data(3)))
def copies_of_objects(x, data):
    other, deep = copy.copy(data), copy.deepcopy(data)
    other.n = 10
    deep.n += 1
    return x * other.n, data.n, deep.n, type(deep) is Data


@program(x2)
def copies_of_tensors(x):
    y = copy.copy(x)
    z = copy.deepcopy(x)
    z.add_(1)
    return y, z, x


T = typing.TypeVar("T")


class Box(typing.Generic[T]):
    def __init__(self, value: T) -> None:
        self.value = value

    def get(self) -> T:
        return self.value


class Pair(typing.NamedTuple):
    a: int
    b: "torch.Tensor"


@program(x2)
def typing_names(x):
    y: typing.Optional[torch.Tensor] = typing.cast("torch.Tensor", x)
    pair = Pair(1, y)
    if typing.TYPE_CHECKING:
        y = None
    return Box[int](3).get() * pair.b, pair, typing.get_origin(typing.List[int]) is list


@program(x2)
def simple_namespace(x):
    n = types.SimpleNamespace(a=1, x=x)
    n.b = n.a + 1
    del n.a
    return n, n.x * n.b, n == types.SimpleNamespace(b=2, x=n.x)


@program(x_and_list)
def heaps_and_bisection(x, items):
    heapq.heapify(items)
    smallest = heapq.heappop(items)
    heapq.heappush(items, 0)
    ordered = [1, 4, 9]
    return smallest, items[0], bisect.bisect_left(ordered, 4), heapq.nlargest(2, ordered), x * smallest


@program(lambda: (torch.ones(2), Data(3)))
def weak_references(x, data):
    ref = weakref.ref(data)
    return x * ref().n, ref() is data


@program(x2)
def imports_inside(x):
    import math as m
    from functools import reduce
    from os import path

    return x * m.floor(2.5), reduce(max, [1, 3, 2]), path.join("a", "b")


def signature_of(a, b=2, *, c=3):
    return a * b * c


@program(x2)
def inspection(x):
    parameters = inspect.signature(signature_of).parameters
    kwargs = {"b": 5, "c": 7, "d": 9}
    return (
        signature_of(x, **{k: v for k, v in kwargs.items() if k in parameters}),
        list(parameters),
        signature_of.__code__.co_argcount,
    )


@program(lambda: (torch.ones(2), 3))
def dynamic_calls(x, n):
    return eval("n + 1") * x, (lambda **kw: kw)(n=n), vars(types.SimpleNamespace(k=n)), sorted(locals())


@program(x2)
def identity_and_ids(x):
    y = x
    z = x + 0
    return y is x, z is x, id(x) == id(y), x is not None, [] is [], (x,)[0] is y


@program(x_and_list)
def type_conversions(x, items):
    return (
        int(3.9),
        float("2.5"),
        str(5),
        list("ab"),
        tuple(items),
        set(items),
        bool([]),
        dict([("a", 1)]),
        int("ff", 16),
        complex(1, 2),
        bytes(2),
        frozenset("a"),
        x * int(True),
        list(range(3)),
        ord("a"),
        repr([1, "a"]),
        float(x[1]),
        int(x[0]),
    )
