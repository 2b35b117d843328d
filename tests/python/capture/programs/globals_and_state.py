"""Globals, and state that outlives a call."""
import collections
import types

import flambeau as torch
from program import program

SCALE = 2.0
COUNT = 0
LOG = []
TABLE = {"shift": 1}
CONFIG = types.SimpleNamespace(scale=3, deep=types.SimpleNamespace(on=True), names=["a"])
WEIGHT = torch.tensor([1.0, 2.0])
CACHE = {}


def x2():
    return (torch.tensor([1.0, -2.0]),)


def set_scale(*_):
    global SCALE
    SCALE = 10.0


def scale_becomes_a_tensor(*_):
    global SCALE
    SCALE = torch.tensor(3.0)


@program(x2, change=[set_scale, scale_becomes_a_tensor])
def reads_a_global(x):
    return x * SCALE


@program(x2)
def writes_a_global(x):
    global COUNT
    COUNT += 1
    return x + COUNT


@program(x2)
def creates_a_global(x):
    global CREATED
    CREATED = x * 2
    return CREATED + 1


@program(x2)
def deletes_a_global(x):
    global TEMPORARY
    TEMPORARY = x + 1
    y = TEMPORARY * 2
    del TEMPORARY
    return y


@program(x2)
def reads_a_missing_global(x):
    return x + NO_SUCH_NAME  # noqa: F821


@program(x2, change=lambda *_: LOG.append("from outside"))
def appends_to_a_global_list(x):
    LOG.append(x * 2)
    return x + len(LOG)


def swap_log(*_):
    global LOG
    LOG = [1, 2, 3]


@program(x2, change=swap_log)
def global_list_is_replaced(x):
    return x * len(LOG)


@program(
    x2,
    change=[
        lambda *_: TABLE.update(shift=7),
        lambda *_: TABLE.pop("shift", None),
        lambda *_: TABLE.update(scale=3),
    ],
)
def reads_a_global_dict(x):
    if "scale" in TABLE:
        x = x * TABLE["scale"]
    return x + TABLE.get("shift", 100), len(TABLE)


@program(x2)
def caches_in_a_global_dict(x):
    key = tuple(x.shape)
    if key not in CACHE:
        CACHE[key] = torch.ones(key) * 3
    return x + CACHE[key]


def switch_off(*_):
    CONFIG.deep.on = False


def new_config(*_):
    global CONFIG
    CONFIG = types.SimpleNamespace(scale=9, deep=CONFIG.deep, names=[])


@program(x2, change=[lambda *_: setattr(CONFIG, "scale", 5), switch_off, new_config])
def reads_a_config(x):
    return x * CONFIG.scale if CONFIG.deep.on else -x, len(CONFIG.names)


@program(x2)
def writes_a_config(x):
    CONFIG.scale += 1
    CONFIG.last = x
    CONFIG.names.append(f"call {CONFIG.scale}")
    return x * CONFIG.scale


def fill_weight(*_):
    WEIGHT.fill_(5)


def new_weight(*_):
    global WEIGHT
    WEIGHT = torch.ones(2, dtype=torch.float64)


def weight_needs_grad(*_):
    WEIGHT.requires_grad_()


@program(x2, change=[fill_weight, weight_needs_grad, new_weight])
def reads_a_global_tensor(x):
    return x * WEIGHT


@program(x2)
def updates_a_global_tensor(x):
    WEIGHT.mul_(2).add_(x)
    return WEIGHT.sum()


@program(lambda: (WEIGHT,), lambda: (torch.tensor([1.0, 2.0]),))
def argument_is_a_global(x):
    WEIGHT.add_(1)
    return x * 2, x is WEIGHT


def helper(x):
    return x + 1


def other_helper(x):
    return x * 7


def replace_helper(*_):
    global helper
    helper = other_helper


def replace_code(*_):
    helper.__code__ = other_helper.__code__


@program(x2, change=[replace_code, replace_helper])
def calls_a_global_function(x):
    return helper(x) - 1


class Settings:
    factor = 2.0
    items = []

    @classmethod
    def scale(cls, x):
        return x * cls.factor


class Derived(Settings):
    pass


def override_factor(*_):
    Derived.factor = 4.0


def replace_method(*_):
    Settings.scale = classmethod(lambda cls, x: x - 100)


@program(x2, change=[lambda *_: setattr(Settings, "factor", 10.0), override_factor, replace_method])
def reads_class_attributes(x):
    return x * Settings.factor, Derived.scale(x), Derived().factor


@program(x2)
def writes_class_attributes(x):
    Settings.factor += 1
    Settings.items.append(x)
    Derived.items.append("derived")
    return x * Derived.factor, len(Settings.items)


def delete_factor(*_):
    if hasattr(Settings, "factor"):
        del Settings.factor


@program(x2, change=delete_factor)
def class_attribute_is_deleted(x):
    return x * getattr(Settings, "factor", -1)


class Node:
    count = 0

    def __init__(self, value):
        self.value = value
        Node.count += 1


@program(x2)
def counts_instances(x):
    nodes = [Node(x * i) for i in range(3)]
    return nodes[-1].value, Node.count


@program(lambda: (torch.ones(2), Node(3)), change=lambda x, node: setattr(node, "value", 8))
def instance_attribute_changes(x, node):
    return x * node.value


@program(
    lambda: (torch.ones(2), Node(3)),
    change=[lambda x, node: setattr(node, "extra", 8), lambda x, node: delattr(node, "value")],
)
def instance_attribute_appears(x, node):
    if hasattr(node, "extra"):
        x = x + node.extra
    return x * (node.value if hasattr(node, "value") else -1)


@program(lambda: (torch.ones(2), Node(3)), change=lambda x, node: setattr(node, "__class__", Settings))
def class_of_an_instance_changes(x, node):
    return x * (2 if isinstance(node, Node) else 5), type(node).__name__


@program(
    lambda: (torch.ones(2), [1, 2]),
    change=[lambda x, items: items.append(3), lambda x, items: items.__setitem__(0, 9)],
)
def list_argument_changes(x, items):
    return x * items[0] + items[-1], len(items)


@program(
    lambda: (torch.ones(2), {"a": 1}),
    change=[lambda x, d: d.update(a=5), lambda x, d: d.update(b=5), lambda x, d: d.clear()],
)
def dict_argument_changes(x, table):
    for value in table.values():
        x = x * value
    return x + table.get("a", 0)


def builtin_is_shadowed(*_):
    global len
    len = lambda x: 42  # noqa: E731


@program(lambda: (torch.ones(2), [1, 2]), change=builtin_is_shadowed)
def shadowed_builtin(x, items):
    return x * len(items)


def set_default_dtype(*_):
    torch.set_default_dtype(torch.float64)


@program(x2, change=set_default_dtype)
def default_dtype_changes(x):
    return x + torch.ones(2), torch.tensor(1.5).dtype


def grad_off(*_):
    torch.set_grad_enabled(False)


@program(lambda: (torch.ones(2, requires_grad=True),), change=grad_off)
def grad_mode_changes(x):
    y = x * 2
    return y, torch.is_grad_enabled()


History = collections.namedtuple("History", "values limit")
HISTORY = History([], 2)


@program(x2)
def history_of_limited_length(x):
    HISTORY.values.append(x)
    if len(HISTORY.values) > HISTORY.limit:
        del HISTORY.values[0]
    return sum(HISTORY.values)


@program(x2)
def order_of_side_effects(x):
    LOG.append("start")
    print("first", len(LOG))
    y = x * 2
    LOG.append(y)
    TABLE["step"] = len(LOG)
    LOG.insert(0, TABLE["step"])
    print("second", LOG[0])
    return y
