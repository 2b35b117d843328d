"""Tuples, lists, dicts, sets and the containers of the standard library: made, read and changed."""
import collections
import dataclasses
import enum

import flambeau as torch
from program import program


def x2():
    return (torch.tensor([1.0, 2.0]),)


def x_and_list():
    return torch.tensor([1.0, 2.0]), [1, 2, 3]


def x_and_dict():
    return torch.tensor([1.0, 2.0]), {"a": 1, "b": 2}


@program(x2)
def tuple_unpacking(x):
    a, b = x, x * 2
    (c, d), e = (a + b, 1), [b]
    a, b = b, a
    (f,) = e
    return a, b, c, d, f


@program(x_and_list, lambda: (torch.ones(2), [1, 2, 3, 4, 5]), lambda: (torch.ones(2), [1]))
def star_unpacking(x, items):
    first, *middle, last = [0, *items, x]
    *start, end = items
    return first, middle, last, start, end, (*items, *start), {*items}


@program(x_and_list, lambda: (torch.ones(2), [1, 2]))
def wrong_number_to_unpack(x, items):
    a, b = items
    return x * a + b


@program(x_and_list)
def list_methods(x, items):
    items.append(x)
    items.extend([4, 5])
    items.insert(1, "one")
    popped = items.pop(), items.pop(0)
    items.remove(2)
    items.reverse()
    return popped, items.index(4), items.count(3), items.copy(), x * len(items)


@program(x_and_list)
def list_subscripts(x, items):
    items[0] = x
    items[-1] += 5
    items[1:1] = [7, 8]
    del items[1]
    return items, items[1:], items[::-1], items[-2:], items[:0], [0] * 3 + items


@program(lambda: (torch.ones(2), [3, 1, 2]))
def list_sorting(x, items):
    copy = sorted(items, reverse=True)
    items.sort(key=lambda i: -i)
    return copy, items, items == copy, [1, 2] < [1, 3], x * items[0]


@program(x_and_list)
def list_is_cleared(x, items):
    old = items
    items = items + [4]
    old.clear()
    return x + len(old), items


@program(x_and_list)
def index_error(x, items):
    y = x + 1
    items.append(y)
    return items[10]


@program(x_and_dict)
def dict_methods(x, table):
    table["c"] = x
    table.update(d=4, e=5)
    table.update({"f": 6})
    gone = table.pop("a"), table.pop("zz", None), table.popitem()
    table.setdefault("g", []).append(7)
    table.setdefault("b", 99)
    return gone, table.get("b"), table.get("none", x), list(table), table.copy(), "d" in table, len(table)


@program(x_and_dict)
def dict_merging(x, table):
    merged = {**table, "a": 10, "x": x}
    table |= {"z": 26}
    return merged, table | {"b": 0}, dict(table, k=1), dict(zip("pq", (1, 2))), dict.fromkeys("ab", 0)


@program(x_and_dict)
def dict_views(x, table):
    keys, items = table.keys(), table.items()
    table["new"] = x
    return list(keys), keys & {"a", "new"}, ("a", 1) in items, [*table.values()][-1], list(reversed(table))


@program(x_and_dict)
def dict_deletion(x, table):
    del table["a"]
    table["a"] = x
    return list(table), table


@program(x_and_dict)
def key_error(x, table):
    table["seen"] = x
    return table["no such key"]


@program(lambda: (torch.ones(2), {1: "int", (2, 3): "tuple", None: "none", 2.5: "float", True: "true"}))
def keys_of_every_kind(x, table):
    return table[1], table[2, 3], table[None], table[2.5], x * len(table), table[1.0]


@program(lambda: (torch.ones(2), torch.zeros(2)))
def tensors_as_keys(a, b):
    table = {a: "a", b: "b"}
    return table[a], table[b], a in table, torch.ones(2) in table, {a, b, a}


@program(lambda: (torch.ones(2), {"layer": {"w": [1, {"deep": 2}]}}))
def nested_containers(x, tree):
    tree["layer"]["w"][1]["deep"] = x
    tree["layer"]["b"] = tree["layer"]["w"]
    return tree["layer"]["w"][0] * x, tree["layer"]["b"] is tree["layer"]["w"]


@program(lambda: (torch.ones(2), {1, 2, 3}, frozenset([2, 3, 4])))
def sets(x, a, b):
    a.add(9)
    a.discard(1)
    a |= {20}
    return (
        a & b,
        a | b,
        a - b,
        a ^ b,
        2 in a,
        len(a),
        {1} <= a,
        a.isdisjoint({77}),
        x * len(a & b),
        set() == a.intersection([]),
    )


@program(lambda: (torch.ones(2), collections.deque([1, 2, 3], maxlen=4)))
def deque(x, d):
    d.append(4)
    d.appendleft(0)
    d.rotate(1)
    d.extend([x, 5])
    return d.pop(), d.popleft(), list(d), d.maxlen, len(d), d[0]


@program(lambda: (torch.zeros(1), collections.OrderedDict(a=1, b=2, c=3)))
def ordered_dict(x, d):
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    d["d"] = x
    return d.popitem(last=False), list(d.items()), d == dict(d), x + d["a"]


@program(lambda: (torch.ones(2), collections.defaultdict(list)))
def default_dict(x, d):
    d["a"].append(x)
    d["b"]
    counts = collections.defaultdict(int)
    for letter in "hello":
        counts[letter] += 1
    return d["a"][0] * counts["l"], dict(counts), "c" in d, d.get("c")


@program(lambda: (torch.ones(2), collections.Counter("hello")))
def counter(x, c):
    c.update("low")
    c["z"] -= 1
    return c.most_common(1), c["missing"], x * c.total(), c + collections.Counter(a=3)


Point = collections.namedtuple("Point", ["x", "y"], defaults=[5])


@program(x2, lambda: (torch.ones(3),))
def namedtuple(x):
    p = Point(x, 2)
    a, b = p
    q = p._replace(y=x * 2)
    return p, p.x * p.y, p[1], q, q._asdict(), Point(1), Point._fields, isinstance(p, tuple), a * b


@program(lambda: (Point(torch.ones(2), 3),), lambda: (Point(torch.ones(2), 4),))
def namedtuple_argument(p):
    return p.x * p.y + len(p), p._replace(x=0)


@dataclasses.dataclass
class Output:
    logits: object
    loss: float = 0.5
    hidden: list = dataclasses.field(default_factory=list)

    def total(self):
        return self.logits.sum() + self.loss


@program(x2)
def dataclass_made_inside(x):
    out = Output(x * 2, hidden=[x])
    out.hidden.append(out.logits)
    out.loss += 1
    return (
        out,
        out.total(),
        Output(1) == Output(1),
        dataclasses.replace(out, loss=7).loss,
        repr(Output(1, 2.0)),
    )


@program(
    lambda: (Output(torch.ones(2)),),
    lambda: (Output(torch.ones(2), 3.0, [1]),),
    change=lambda out: setattr(out, "loss", 9.0),
)
def dataclass_argument(out):
    out.hidden.append(len(out.hidden))
    fields = {f.name: getattr(out, f.name) for f in dataclasses.fields(out)}
    return out.total(), fields


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    size: int
    name: str = "f"

    def __post_init__(self):
        object.__setattr__(self, "name", self.name.upper())


@program(x2)
def frozen_dataclass(x):
    a, b = Frozen(2), Frozen(3, "g")
    table = {a: x, b: x * 2}
    try:
        a.size = 5
    except dataclasses.FrozenInstanceError as error:
        message = str(error)
    return table[Frozen(2, "F")], a < b, sorted([b, a])[0].name, message


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


class Flags(enum.Flag):
    A = enum.auto()
    B = enum.auto()


@program(lambda: (torch.ones(2), Mode.SUM), lambda: (torch.ones(2), Mode.MEAN))
def enums(x, mode):
    y = x.sum() if mode is Mode.SUM else x.mean()
    return (
        y * Level.HIGH,
        mode.value,
        mode.name,
        Mode("mean") == mode,
        Level.LOW < Level.HIGH,
        [m.name for m in Mode],
        Flags.A | Flags.B,
    )


@program(lambda: ([torch.ones(2), torch.zeros(2)], {"a": torch.ones(1)}))
def tensors_in_containers(items, table):
    items[0] = items[0] + items[1]
    items.append(table["a"] * 2)
    table["b"] = items[-1]
    return torch.cat(items), table


@program(lambda: (torch.ones(2),))
def container_holds_itself(x):
    items = [x]
    items.append(items)
    return items


@program(x_and_list)
def same_object_twice(x, items):
    y = x + 1
    return [y, y], (items, items), {"a": y, "b": items}


class Stack(list):
    def push(self, x):
        self.append(x)
        return self

    def top(self):
        return self[-1]


class Lower(dict):
    def __missing__(self, key):
        return key.lower()

    def __setitem__(self, key, value):
        super().__setitem__(key.upper(), value)


@program(lambda: (torch.ones(2), Stack([1]), Lower(A=1)))
def subclasses_of_containers(x, stack, lower):
    stack.push(x).push(x * 2)
    lower["b"] = x
    lower.note = "attribute"
    return stack.top() * 2, len(stack), lower["B"], lower["Q"], Stack("ab"), type(stack[:1]).__name__
