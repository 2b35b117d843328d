"""What was there before the call: methods of it, its last references, its order, its history."""
import collections
import functools
import weakref

import flambeau as torch
from program import program


class Counter:
    def __init__(self):
        self.n = 0


class Named(RuntimeError):
    def __init__(self, code, text="named"):
        super().__init__(f"{text}: {code}")
        self.code = code


def list_and_append():
    items = []
    return torch.ones(2), items, items.append


@program(list_and_append, lambda: (torch.ones(2), [], {}.__contains__),
         change=lambda x, items, add: items.append("changed"))
def method_in_c_of_a_list(x, items, add):
    y = x * 2
    add(len(items))
    return y + len(items)


def deque_and_methods():
    queue = collections.deque([1, 2])
    return torch.ones(2), queue, queue.pop, queue.appendleft


@program(deque_and_methods)
def methods_in_c_of_a_deque(x, queue, pop, put):
    put(x)
    put(pop())
    return x * len(queue)


@program(lambda: (torch.ones(2), torch.full((2,), 3.0)))
def texts_of_tensors_alone(x, y):
    return x + 1, f"{x}", str(y), repr([x, y]), "{}".format((y,)), "%s" % y


@program(lambda: (torch.ones(2),))
def kept_alive_by_a_name(x):
    counter = Counter()
    seen = weakref.ref(counter)
    y = x * 2
    print(end="")
    z = y + 1
    return z, seen() is None, y


@program(lambda: (torch.ones(2), {8, 0}), lambda: (torch.ones(2), {0, 8}), lambda: (torch.ones(2), {True, 8}),
         lambda: (torch.ones(2), {1.0, 8}))
def order_of_a_set(x, numbers):
    return [x * n for n in numbers], list(numbers), sorted(numbers), min(numbers)


def set_of_counters():
    counters = {Counter()}
    return torch.ones(2), counters, {next(iter(counters)): 1}


@program(set_of_counters)
def objects_in_a_set(x, counters, table):
    for counter in counters:
        counter.n += 1
    for counter in table:
        counter.n += 2
        counter.last = x * 2
    return x + counter.n


@program(lambda: (torch.ones(2), {1, 2, 3}))
def set_is_changed(x, numbers):
    numbers.discard(1)
    numbers |= {7, 9}
    numbers.remove(2)
    return x * len(numbers), list(numbers)


class Tags(set):
    def mark(self, tag):
        self.add(tag)
        self.last = tag
        return self

    def add(self, tag):
        super().add(f"<{tag}>")


class Recent(collections.deque):
    def append(self, item):
        super().append((item, len(self)))

    def newest(self):
        return self[-1][0]


@program(lambda: (torch.ones(2), Tags(["a"]), Recent([(0, 0)], maxlen=2)),
         change=lambda x, tags, recent: recent.append(5))
def subclasses_of_sets_and_deques(x, tags, recent):
    tags.mark("b").mark("c")
    recent.append(x)
    recent.append(x * 2)
    recent.note = "attribute"
    own = Recent([1], maxlen=1)
    own.append(x)
    return recent.newest() * 2, len(tags), tags.last, own, own.maxlen, Tags("a").mark("z")


@program(lambda: (torch.ones(2),), lambda: (torch.inference_mode()(torch.ones)(2),), lambda: (torch.ones(2),))
def whether_made_in_inference_mode(x):
    y = x * 2
    return y, x.is_inference(), y.is_inference(), x.view(2, 1)


def earlier_graph():
    x = torch.ones(3, requires_grad=True)
    return x, x * x


@program(earlier_graph)
def gradient_through_an_earlier_graph(x, y):
    z = y * 2
    (g,) = torch.autograd.grad(z.sum(), x)
    return g * 2, z.detach()


@program(earlier_graph)
def backward_through_an_earlier_graph(x, y):
    z = (y * 2).sum()
    z.backward()
    return z.detach() + 1, x.grad * 2


@program(lambda: (torch.ones(2), Named(3)))
def init_of_an_exception_from_outside(x, error):
    error.__init__(error.code + 1, text="again")
    return x * error.code, str(error)


@program(lambda: (torch.ones(2),))
def generators_end(x):
    log = []

    def numbers(n):
        try:
            for i in range(n):
                yield i
        finally:
            log.append(n)

    print(end="")
    waiting = numbers(2)
    first = next(waiting)
    print(end="")
    waiting = numbers(3)
    y = x * len(log)
    next(waiting)
    print(end="")
    del waiting
    return y + first, x + len(log)


class Told:
    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append("gone")


@program(lambda: (torch.ones(2), []))
def objects_tell_their_end(x, log):
    told = Told(log)
    print(end="")
    y = x * 2 + len(log)
    told = None
    return y, x + len(log), told


class Base:
    def scaled(self, x):
        return x * 2


class Derived(Base):
    def scaled(self, x):
        y = x + 1
        print(end="")
        return super().scaled(y)


@program(lambda: (torch.ones(2), Derived()))
def super_after_a_break(x, derived):
    return derived.scaled(x) + 1


runs = []


@functools.lru_cache(maxsize=None)
def table_of(n, name="a"):
    return tuple(i * n for i in range(3)) + (name,)


@functools.cache
def counted(n):
    runs.append(n)
    return n + len(runs)


class Sized:
    def __init__(self, n):
        self.n = n

    @functools.lru_cache
    def width(self, by):
        return self.n * by


@program(lambda: (torch.ones(2), 2, Sized(3)), lambda: (torch.ones(2), 3, Sized(4)),
         change=lambda x, n, sized: counted.cache_clear())
def cached_functions(x, n, sized):
    a, b, c, name = table_of(n)
    y = x * (a + b + c)
    return y + counted(n), name, y * sized.width(n), table_of(n) is table_of(n), runs[:]


@program(lambda: (torch.ones(2), 2), lambda: (torch.ones(2), 3))
def classes_made_inside(x, n):
    class Scale:
        by = n

        def __call__(self, x):
            return x * self.by

    y = Scale()(x)

    class Kept(Scale):
        by = n + 1

    return y + 1, Kept, Kept()(y)


def class_of_its_own():
    class Plain:
        by = 2

    return torch.ones(2), Plain


@program(class_of_its_own)
def sets_attributes_of_a_class(x, plain):
    type.__setattr__(plain, "by", plain.by + 1)
    plain.other = 5
    y = x * plain.by
    type.__delattr__(plain, "other")
    return y, plain.by, hasattr(plain, "other")


class Key:
    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return self.name == other.name


@program(lambda: (torch.ones(2), {Key("a"): 1, Key("b"): 2}),
         change=lambda x, table: table.update({Key("c"): 3}))
def keys_with_an_equality_of_their_own(x, table):
    for key in table:
        key.name += "'"
    return x * sum(table.values()), [key.name for key in table], Key("a") in table
