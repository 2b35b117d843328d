"""Classes: attributes, descriptors, inheritance; made outside and inside of what is compiled."""
import abc

import flambeau as torch
from program import program


def x2():
    return (torch.tensor([1.0, 2.0]),)


class Account:
    kind = "plain"

    def __init__(self, start=0):
        self.balance = start
        self.log = []

    def put(self, amount):
        self.balance = self.balance + amount
        self.log.append(amount)
        return self


@program(
    lambda: (torch.ones(2), Account()),
    lambda: (torch.ones(2), Account(5)),
    change=lambda x, a: setattr(a, "balance", 100),
)
def attribute_mutation(x, account):
    account.put(x).put(1)
    return account.balance * 2


@program(x2)
def object_made_inside(x):
    account = Account(10).put(x)
    account.note = "new"
    account.balance += 1
    return account, account.balance


@program(x2)
def object_made_and_dropped(x):
    return Account(x).put(x).put(2).balance


@program(lambda: (torch.ones(2), Account()))
def attributes_by_name(x, account):
    setattr(account, "color", "red")
    for i, name in enumerate(("one", "two")):
        setattr(account, name, x * i)
    delattr(account, "log")
    return (
        getattr(account, "color"),
        getattr(account, "none", 7),
        hasattr(account, "log"),
        account.two,
        sorted(vars(account)),
        account.kind,
    )


@program(lambda: (torch.ones(2), Account()))
def deleted_attribute(x, account):
    del account.balance
    return x, account.balance


@program(lambda: (torch.ones(2), Account()))
def instance_hides_class_attribute(x, account):
    account.kind = "own"
    other = Account()
    Account.kind, before = "changed", Account.kind
    return account.kind, other.kind, before, x


@program(x2)
def class_made_inside(x):
    class Local:
        factor = 3

        def scale(self, y):
            return y * self.factor

    class Child(Local):
        factor = 5

    return Local().scale(x), Child().scale(x), Child.__name__, Child.__mro__[1].__name__


@program(lambda: (torch.ones(2), [Account(1), Account(2)]))
def same_object_in_two_places(x, accounts):
    accounts.append(accounts[0])
    accounts[2].put(x)
    return accounts[0].balance, accounts[0] is accounts[2]


class Temperature:
    def __init__(self, celsius):
        self._celsius = celsius

    @property
    def fahrenheit(self):
        return self._celsius * 1.8 + 32

    @fahrenheit.setter
    def fahrenheit(self, value):
        self._celsius = (value - 32) / 1.8

    @fahrenheit.deleter
    def fahrenheit(self):
        self._celsius = None


@program(lambda: (torch.ones(2), Temperature(10.0)), change=lambda x, t: setattr(t, "fahrenheit", 50))
def properties(x, t):
    before = t.fahrenheit
    t.fahrenheit = before + 18
    after = t._celsius
    other = Temperature(x)
    del other.fahrenheit
    return x * before, after, other._celsius, Temperature(x).fahrenheit


@program(lambda: (torch.ones(2), Account()))
def property_without_setter(x, account):
    class ReadOnly:
        @property
        def size(self):
            return 3

    y = x * ReadOnly().size
    ReadOnly().size = 4
    return y


class Logged:
    """A descriptor."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return self if instance is None else getattr(instance, self.name, "unset")

    def __set__(self, instance, value):
        instance.log.append((self.name, value))
        setattr(instance, self.name, value)


class WithDescriptor:
    width = Logged()
    height = Logged()

    def __init__(self):
        self.log = []


@program(lambda: (torch.ones(2), WithDescriptor()))
def descriptors(x, d):
    before = d.width
    d.width = 3
    d.height = x * d.width
    return before, d.height, d.log, WithDescriptor.width.name


class Lazy:
    """A descriptor without __set__: the instance's own attribute wins."""

    def __init__(self, make):
        self.make = make

    def __get__(self, instance, owner):
        value = instance.__dict__["table"] = self.make(instance)
        return value


class WithLazy:
    made = 0

    @Lazy
    def table(self):
        WithLazy.made += 1
        return torch.full((2,), 4.0)


@program(lambda: (torch.ones(2), WithLazy()))
def non_data_descriptor(x, w):
    return x * w.table + w.table, WithLazy.made


class Proxy:
    def __init__(self, target):
        self.target = target

    def __getattr__(self, name):
        if name.startswith("get_"):
            return lambda: getattr(self.target, name[4:])
        return getattr(self.target, name)


@program(lambda: (torch.ones(2), Proxy(Account(3))))
def getattr_method(x, p):
    return x * p.balance, p.get_balance(), hasattr(p, "nothing"), p.put(x).balance, getattr(p, "nope", None)


class Recorder:
    def __init__(self):
        object.__setattr__(self, "events", [])

    def __getattribute__(self, name):
        if name != "events":
            self.events.append(f"get {name}")
        return object.__getattribute__(self, name)

    def __setattr__(self, name, value):
        self.events.append(f"set {name}")
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        self.events.append(f"del {name}")
        object.__delattr__(self, name)


@program(lambda: (torch.ones(2), Recorder()))
def every_attribute_access(x, r):
    r.a = x
    y = r.a * 2
    r.a = y
    del r.a
    return y, r.events


class Shape(abc.ABC):
    registry = []

    def __init_subclass__(cls, **options):
        super().__init_subclass__()
        cls.registry.append((cls.__name__, options))

    @abc.abstractmethod
    def area(self): ...

    def describe(self):
        return f"{type(self).__name__} of {self.area()}"


class Square(Shape, sides=4):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2


class Tagged:
    def describe(self):
        return "tagged " + super().describe()


class TaggedSquare(Tagged, Square):
    def __init__(self, side):
        super().__init__(side + 1)

    def area(self):
        return super(TaggedSquare, self).area() * 2


@program(lambda: (torch.ones(2), Square(3)), lambda: (torch.ones(2), TaggedSquare(3)))
def inheritance(x, shape):
    return (
        x * shape.area(),
        shape.describe(),
        isinstance(shape, Shape),
        isinstance(shape, (int, Tagged)),
        issubclass(type(shape), Square),
    )


@program(x2)
def abstract_class(x):
    y = x + 1
    return y, Shape()


class Builder:
    made = 0

    def __init__(self, value):
        self.value = value

    @classmethod
    def from_tensor(cls, x):
        cls.made += 1
        return cls(x * cls.made)

    @staticmethod
    def double(x):
        return x * 2


class BigBuilder(Builder):
    made = 10


@program(x2)
def class_and_static_methods(x):
    a, b = Builder.from_tensor(x), BigBuilder.from_tensor(x)
    return a.value, b.value, Builder.double(x), b.double(x), type(b).__name__, Builder.made, BigBuilder.made


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@program(lambda: (torch.ones(2), Slotted(3)))
def slots(x, s):
    s.b = x * s.a
    s.a = 5
    try:
        s.c = 1
    except AttributeError:
        return s.b, "no c"


class Single:
    instance = None

    def __new__(cls, *args):
        if cls.instance is None:
            cls.instance = super().__new__(cls)
        return cls.instance

    def __init__(self, value):
        self.value = value


@program(x2)
def new_method(x):
    a, b = Single(1), Single(x)
    return a is b, a.value * 2


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.by = cls.__name__
        return made

    def __len__(cls):
        return 7


class Made(metaclass=Meta):
    pass


@program(x2)
def metaclass(x):
    return Made().by, x * len(Made), type(Made).__name__


@program(lambda: (torch.ones(2), Account(1)), lambda: (torch.ones(2), Builder(1)), lambda: (torch.ones(2), 3))
def dispatch_on_type(x, thing):
    if isinstance(thing, Account):
        return x + thing.balance
    if type(thing) is int:
        return x * thing
    return getattr(thing, "value") - x, callable(thing), callable(Account)


@program(lambda: (torch.ones(2), Account(1).put))
def bound_method_argument(x, put):
    return put(x).balance, put.__self__.log, put.__func__ is Account.put


def call_later(account):
    return account.put


@program(lambda: (torch.ones(2), Account(1)))
def bound_methods(x, account):
    put = call_later(account)
    put(x)
    Account.put(account, 5)
    return account.balance, put.__name__, put == account.put
