"""Random programs as source text: typed statements over tensors, numbers, containers, objects and closures.

Arithmetic on tensors is exact, whatever its order: small whole numbers, without division. Loops end, lists
and integers stay small, every name that is read is bound, and what raises is meant to.
"""
import functools

from hypothesis import strategies as st

HEADER = '''
import flambeau as torch
from program import program

COUNT = 0
LOG = []


class Point:
    kind = 1

    def __init__(self, x, n):
        self.x, self.n = x, n

    def move(self, by):
        self.n += by
        return self.x * self.n


class Logged:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        LOG.append(self.name)
        return self

    def __exit__(self, kind, error, trace):
        LOG.append(kind.__name__ if kind else self.name)
        return kind is KeyError


def argument(n, *, shape=(2, 3), grad=False):
    return (torch.arange(float(shape[0] * shape[1])).reshape(shape) - n).requires_grad_(grad)


def arguments(x, make_y, n, items, table):
    return x, make_y(x), n, items, table, Point(make_y(x), n)
'''


def forms(text):
    return [form.strip() for form in text.split("|")]


# For each type, expressions that give it; a word in braces stands for one of that type.
EXPRESSIONS = {
    "int": forms("""
        {number} | ({int} + {int}) | ({int} - {int}) | ({int} * {int}) % 17 | -{int} | abs({int}) |
        ({int} // ({int} or 2)) | ({int} % 5) | max({int}, {int}) | len({ints}) | {ints}[{index}] |
        sum({ints}) | {table}['{key}'] | {table}.get('{key}', {int}) | {point}.n | Point.kind | COUNT |
        len(LOG) | ({int} if {bool} else {int}) | {tensor}.dim() | {tensor}.shape[-1] |
        int({tensor}.sum()) | sum(i * {int} for i in {ints}) | (lambda a, b={int}: a + b)({int})"""),
    "bool": forms("""
        {int} > {int} | {int} == {int} | {int} in {ints} | '{key}' in {table} | not ({bool}) |
        ({bool} and {bool}) | ({bool} or {bool}) | {tensor} is {tensor} | {int} < {int} <= {int} |
        any(i > {int} for i in {ints}) | bool(({tensor} > {int}).any()) | isinstance({point}, Point)"""),
    "tensor": forms("""
        ({tensor} + {tensor}) | ({tensor} - {tensor}) | ({tensor} * {int}) | ({int} - {tensor}) |
        ({tensor} * {tensor}).clamp(-50, 50) | {tensor}.relu() | {tensor}.sum() | {tensor}[0] |
        {tensor}.abs() | torch.maximum({tensor}, {tensor}) | {tensor}.clone() | {tensor}.view(-1)[:3] |
        {tensor}.sum(0) | {point}.x | {point}.move({int}) | ({tensor} if {bool} else {tensor}) |
        {tensor}.detach() | torch.stack([{tensor}.sum() * i for i in [{int}, {int}]]).sum() |
        sum([{tensor}, {tensor}]) | torch.where({tensor} > {int}, {tensor}, {tensor}) | {tensors}[{index}] |
        {function}({tensor})"""),
    "ints": forms("""
        [{int}, {int}] | [i + {int} for i in {ints}] | sorted({ints}) | {ints}[1:] |
        list(range({int} % 4)) | [i for i in {ints} if i > {int}] | list({table}.values()) |
        [*{ints}[:3], {int}] | list(map(abs, {ints}))"""),
    "tensors": forms("""
        [{tensor}, {tensor}] | [{tensor} * i for i in {ints}[:2]] or [{tensor}] | {tensors}[::-1]"""),
    "table": forms("""
        {{'{key}': {int}, '{key}': {int}}} | dict({table}) | {{**{table}, '{key}': {int}}} |
        {{k: v + {int} for k, v in {table}.items()}}"""),
    "point": forms("""
        Point({tensor}, {int})"""),
}

# What stands for a type where expressions end and no name has it.
SIMPLE = {"int": ["1"], "bool": ["True", "False"], "tensors": ["[x, y]", "[x]"], "ints": ["[1, 2]"],
          "table": ["{'a': 1}"]}

# Statements of one line.
STATEMENTS = forms("""
    {ints_name}.append({int}) | {ints_name}[{index}] = {int} | {ints_name}.insert(0, {int}) |
    {ints_name}.pop() | {table_name}['{key}'] = {int} | {table_name}.update({key}={int}) |
    {table_name}.pop('{key}', None) | del {table_name}['{key}'] | {point_name}.n = {int} |
    {point_name}.n += {int} | {point_name}.x = {tensor} | {point_name}.extra = {int} | Point.kind = {int} |
    {point_name}.move({int}) | {tensors_name}.append({tensor}) | {tensor_name}.add_({int}) |
    {tensor_name}.mul_({int}).clamp_(-50, 50) | {tensor_name}[0] = {int} | {tensor_name}.zero_() |
    LOG.append({int}) | print({int}, '{key}') | assert {bool}, '{key}' | LOG.append({tensor}.sum().item()) |
    print({tensor}.tolist())""")
ASSIGNED = {
    "int": forms("{0} = {int} | {0} += {int} | {0} = ({0} * {int}) % 17"), "bool": ["{0} = {bool}"],
    "tensor": forms("{0} = {tensor} | {0} = {0} + {tensor} | {0} += {int}"), "tensors": ["{0} = {tensors}"],
    "ints": ["{0} = {ints}"], "table": ["{0} = {table}"], "point": ["{0} = {point}"],
}
KEYS = ["a", "b", "c"]
LETTERS = {"int": "n", "bool": "b", "tensor": "x", "ints": "items", "tensors": "xs", "table": "d",
           "point": "p", "function": "f"}


@functools.cache
def integers_below(n):
    return st.integers(0, n - 1)


class Writer:
    """Writes one function; names are (type, level of the function that binds them)."""

    def __init__(self, draw):
        self.draw, self.lines, self.made, self.level, self.depth = draw, [], 0, 0, 0
        self.names = {"x": ("tensor", 0), "y": ("tensor", 0), "n": ("int", 0), "items": ("ints", 0),
                      "d": ("table", 0), "p": ("point", 0)}
        self.rebound = [set()]  # for each function being written: names of others that it binds

    def pick(self, options):
        return options[self.below(len(options))]

    def below(self, n):
        return self.draw(integers_below(n)) if n > 1 else 0

    def line(self, text):
        self.lines.append("    " * (self.depth + 1) + text)

    def new_name(self, kind):
        self.made += 1
        return f"{LETTERS[kind]}{self.made}"

    def known(self, kind):
        return [name for name, (its, _) in self.names.items() if its == kind]

    # Expressions ------------------------------------------------------------------------------------------
    def expression(self, kind, depth=2):
        names = self.known(kind)
        if kind == "function":
            return self.pick(names) if names else "torch.abs"
        if depth == 0:
            return self.pick(names or SIMPLE[kind])
        if names and self.below(3) == 0:
            return self.pick(names)
        return self.fill(self.pick(EXPRESSIONS[kind]), depth - 1)

    def fill(self, form, depth=2):
        """Puts expressions in place of the words in braces."""
        text, rest = "", form
        while rest:
            start = rest.find("{")
            if start < 0 or rest[start:start + 2] == "{{":
                cut = len(rest) if start < 0 else start + 2
                text, rest = text + rest[:cut].replace("{{", "{").replace("}}", "}"), rest[cut:]
                continue
            end = rest.index("}", start)
            text, word, rest = text + rest[:start].replace("}}", "}"), rest[start + 1:end], rest[end + 1:]
            text += self.word(word, depth)
        return text

    def word(self, word, depth):
        if word == "number":
            return str(self.below(7) - 2)
        if word == "index":
            return self.pick(["0", "-1", "0", "-1", "1"])
        if word == "key":
            return self.pick(KEYS)
        if word.endswith("_name"):
            return self.pick(self.known(word[:-5]))
        return self.expression(word, depth)

    # Statements -------------------------------------------------------------------------------------------
    def bind(self, name):
        """Notes that the function being written binds a name, perhaps of another function."""
        if self.names[name][1] < self.level:
            self.rebound[-1].add(name)

    def statement(self, size):
        choice = self.below(17 if size > 1 and self.depth < 4 else 8)
        if choice < 3:
            self.assignment()
        elif choice < 7:
            self.line(self.fill(self.pick([form for form in STATEMENTS if self.has_names_for(form)])))
        elif choice == 7:
            self.aliases()
        else:
            (self.branch, self.loop_over_range, self.loop_over_items, self.while_loop, self.handler,
             self.context, self.matching, self.loop_over_generator, self.inner_function)[choice - 8](size - 1)

    def has_names_for(self, form):
        return all(self.known(kind) for kind in LETTERS if "{" + kind + "_name}" in form)

    def assignment(self):
        kind = self.pick(["tensor", "tensor", "int", "ints", "table", "tensors", "point", "bool"])
        names = self.known(kind)
        if names and self.below(2):
            name = self.pick(names)
            self.bind(name)
            self.line(self.fill(self.pick(ASSIGNED[kind]).replace("{0}", name)))
        else:
            text = self.expression(kind)
            name = self.new_name(kind)
            self.line(f"{name} = {text}")
            self.names[name] = (kind, self.level)

    def aliases(self):
        """Two names for one object, or two names that change places."""
        kind = self.pick(["tensor", "ints", "point", "table"])
        old = self.pick(self.known(kind))
        if self.below(2):
            name = self.new_name(kind)
            self.line(f"{name} = {old}")
            self.names[name] = (kind, self.level)
        else:
            other = self.pick(self.known(kind))
            self.bind(old), self.bind(other)
            self.line(f"{old}, {other} = {other}, {old}")

    def block(self, size, last=None):
        """Statements one step further in; what they bind is unknown afterwards."""
        before = dict(self.names)
        self.depth += 1
        for _ in range(1 + self.below(max(size, 1))):
            self.statement(size)
        if last:
            self.line(last)
        self.depth -= 1
        self.names = before

    def branch(self, size):
        self.line(f"if {self.expression('bool')}:")
        returns = self.level == 0 and self.below(4) == 0
        self.block(size, f"return {self.expression('tensor')}" if returns else None)
        if self.below(2):
            self.line(f"elif {self.expression('bool')}:")
            self.block(size)
        if self.below(2):
            self.line("else:")
            self.block(size)

    def loop_end(self):
        how = self.pick([None, "break", "continue"])
        return how and f"if {self.expression('bool')}: {how}"

    def loop(self, head, names, size):
        self.line(head)
        before = dict(self.names)
        self.names.update((name, (kind, self.level)) for name, kind in names)
        self.depth += 1
        if end := self.loop_end():
            self.line(end)
        self.depth -= 1
        self.block(size)
        self.names = before
        if not self.below(3):
            self.line("else:")
            self.block(size)

    def loop_over_range(self, size):
        name = self.new_name("int")
        end = self.pick(["2", "3"]) if self.below(2) else f"abs({self.expression('int')}) % 3"
        self.loop(f"for {name} in range({end}):", [(name, "int")], size)

    def loop_over_items(self, size):
        a, b = self.new_name("int"), self.new_name("int")
        head, names = self.pick([
            (f"for {a} in {{ints}}[:3]:", [(a, "int")]),
            (f"for {a}, {b} in enumerate({{ints}}[:2]):", [(a, "int"), (b, "int")]),
            (f"for {a}, {b} in zip({{ints}}[:3], range(1, 4)):", [(a, "int"), (b, "int")]),
            (f"for {a} in list({{table}}.values()):", [(a, "int")]),
            (f"for {a} in {{table}}.values():", [(a, "int")]),
            (f"for x{a} in {{tensors}}[:2]:", [(f"x{a}", "tensor")]),
        ])
        self.loop(self.fill(head), names, size)

    def while_loop(self, size):
        self.made += 1
        counter = f"left{self.made}"
        self.line(f"{counter} = {1 + self.below(3)}")
        self.line(f"while {counter} > 0 and {self.expression('bool')}:")
        self.depth += 1
        self.line(f"{counter} -= 1")
        self.depth -= 1
        self.block(size)

    def handler(self, size):
        self.line("try:")
        self.block(size, self.pick([None, "{}['missing']", f"raise ValueError({self.expression('int')})",
                                    f"if {self.expression('bool')}: raise KeyError('{self.pick(KEYS)}')",
                                    self.expression("ints") + "[9]", "torch.ones(2) + torch.ones(3)"]))
        kind = self.pick(forms("ValueError | (KeyError, IndexError) | Exception | RuntimeError"))
        self.line(f"except {kind} as error:")
        self.block(size, self.pick([None, "LOG.append(type(error).__name__)", "raise"]))
        if not self.below(3):
            self.line("else:")
            self.block(size)
        if not self.below(2):
            self.line("finally:")
            self.block(size)

    def context(self, size):
        self.line("with " + self.pick(forms("""
            torch.no_grad(): | Logged('a'): | Logged('b') as log, Logged('c'): | torch.enable_grad():""")))
        self.block(size, self.pick([None, None, "raise KeyError('a')"]))

    def matching(self, size):
        value = self.pick(["{ints}", "{int}", "{table}", "({int}, {point})"])
        self.line(f"match {self.fill(value)}:")
        self.depth += 1
        a = self.new_name("int")
        for pattern in (f"[{a}, *_]", f"int({a}) if {a} > 1", f"{{'a': {a}}}", f"({a}, Point(kind=1))", "_"):
            if pattern == "_" or self.below(2):
                before = dict(self.names)
                if pattern != "_":
                    self.names[a] = ("int", self.level)
                self.line(f"case {pattern}:")
                self.block(size)
                self.names = before
        self.depth -= 1

    def loop_over_generator(self, size):
        """A generator whose body has effects of its own, and a loop that may leave it early."""
        self.made += 1
        name, a = f"g{self.made}", self.new_name("tensor")
        self.line(f"def {name}(count):")
        start, before = len(self.lines), dict(self.names)
        self.level += 1
        self.rebound.append(set())
        self.depth += 1
        self.line("for i in range(count):")
        self.block(size - 1, f"yield {self.expression('tensor')} * i")
        self.depth -= 1
        self.level -= 1
        self.names = before
        if rebound := sorted(self.rebound.pop()):
            self.lines.insert(start, "    " * (self.depth + 2) + f"nonlocal {', '.join(rebound)}")
        self.loop(f"for {a} in {name}({self.pick(['2', '3'])}):", [(a, "tensor")], size)

    def inner_function(self, size):
        name, a = self.new_name("function"), self.new_name("tensor")
        self.line(f"def {name}({a}, scale={1 + self.below(3)}):")
        start, before = len(self.lines), dict(self.names)
        self.level += 1
        self.rebound.append(set())
        self.names[a] = ("tensor", self.level)
        self.block(size, f"return {self.expression('tensor')} * scale")
        self.level -= 1
        self.names = {**before, name: ("function", self.level)}
        if rebound := sorted(self.rebound.pop()):
            self.lines.insert(start, "    " * (self.depth + 2) + f"nonlocal {', '.join(rebound)}")

    def function(self, size):
        for _ in range(2 + self.below(size)):
            self.statement(size)
        shown = [name for name, (kind, _) in self.names.items() if kind != "function"]
        return "\n".join([*self.lines, f"    return {', '.join(shown)}"])


SHAPES = ["(2, 3)", "(2, 3)", "(4, 3)"]
CHANGES = forms("""
    p.n += 1 | items.append(5) | d['b'] = 7 | x.detach().mul_(2) | p.x = p.x + 1 | Point.kind += 1 |
    LOG.append(0) | x.requires_grad_() | items[:1] = [9] | d.clear() | p.extra = 1 |
    x.data = torch.ones(1, 3) |
    Point.move = lambda self, by: self.x - by""")


@st.composite
def inputs(draw):
    """Source of a function that makes arguments; the second is the first, a view of it, or another tensor."""
    n, shape = draw(st.integers(-1, 3)), draw(st.sampled_from(SHAPES))
    x = f"argument({n}, shape={shape}, grad={draw(st.sampled_from([False] * 4 + [True]))})"
    y = draw(st.sampled_from(["x", "x[0]", "x.view(-1)[:3]", "argument(1)[0]", "argument(2, grad=True)[0]"]))
    items = draw(st.lists(st.integers(-2, 6), min_size=2, max_size=4))
    table = draw(st.dictionaries(st.sampled_from(KEYS), st.integers(-2, 6), min_size=2))
    return f"lambda: arguments({x}, lambda x: {y}, {n}, {items}, {table})"


@st.composite
def programs(draw, size=5):
    """Source of a module with one program, called `main`."""
    body = Writer(draw).function(size)
    makers = ", ".join(draw(inputs()) for _ in range(2))
    changes = "".join(f"def change_{i}(x, y, n, items, d, p):\n    {change}\n\n\n"
                      for i, change in enumerate(draw(st.sampled_from(CHANGES)) for _ in range(2)))
    return (f"{HEADER}\n\n{changes}@program({makers}, change=[change_0, change_1])\n"
            f"def main(x, y, n, items, d, p):\n    global COUNT\n    COUNT += 1\n{body}\n")
