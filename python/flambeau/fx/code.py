"""The Python code of a Graph."""
import dataclasses
import math
import operator

from .. import _C
from .node import Node, function_text, type_text

_INFIX = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/",
          operator.floordiv: "//", operator.mod: "%", operator.pow: "**", operator.matmul: "@",
          operator.lshift: "<<", operator.rshift: ">>", operator.and_: "&", operator.or_: "|",
          operator.xor: "^", operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.gt: ">",
          operator.le: "<=", operator.ge: ">="}
_PREFIX = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}
IN_PLACE = {operator.iadd: "+=", operator.isub: "-=", operator.imul: "*=", operator.itruediv: "/=",
             operator.ifloordiv: "//=", operator.imod: "%=", operator.ipow: "**=", operator.imatmul: "@=",
             operator.iand: "&=", operator.ior: "|=", operator.ixor: "^=", operator.ilshift: "<<=",
             operator.irshift: ">>="}


@dataclasses.dataclass
class PythonCode:
    """`src` defines forward(); `globals` are the names it needs."""

    src: str
    globals: dict


class _Writer:
    def __init__(self, root, verbose):
        import flambeau

        self.root, self.verbose = root, verbose
        self.globals = {"torch": flambeau, "device": _C.device, "inf": math.inf, "nan": math.nan}

    def function(self, f):
        """The text that gives a function: its path, or a name for itself."""
        path = function_text(f)
        head, *rest = path.split(".")
        value = {"torch": self.globals["torch"], "operator": operator}.get(head)
        for part in rest:
            value = getattr(value, part, None)
        if head != "operator" and rest and value is f:
            return path
        return self.constant(f, path.replace(".", "_"))

    def constant(self, value, name):
        name = "".join(c if c.isalnum() else "_" for c in name).lstrip("0123456789") or "_constant"
        candidate, k = name, 0
        while self.globals.get(candidate, value) is not value:
            k += 1
            candidate = f"{name}_{k}"
        self.globals[candidate] = value
        return candidate

    def value(self, a):
        """An argument."""
        if isinstance(a, Node):
            return a.name
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return f"{self.constant(type(a), type(a).__name__)}({', '.join(map(self.value, a))})"
        if isinstance(a, tuple):
            return f"({', '.join(map(self.value, a))}{',' if len(a) == 1 else ''})"
        if isinstance(a, list):
            return f"[{', '.join(map(self.value, a))}]"
        if isinstance(a, dict):
            return f"{{{', '.join(f'{k!r}: {self.value(v)}' for k, v in a.items())}}}"
        if isinstance(a, slice):
            return f"slice({self.value(a.start)}, {self.value(a.stop)}, {self.value(a.step)})"
        if a is None or a is ... or type(a) in (bool, int, float, complex, str, bytes, range, _C.device):
            return "..." if a is ... else repr(a)
        if type(a) is _C.dtype:
            return repr(a).replace("flambeau.", "torch.")
        if isinstance(a, type) or callable(a):
            return self.function(a)
        return self.constant(a, f"_{type(a).__name__}")

    def arguments(self, args, kwargs):
        return ", ".join([*map(self.value, args), *(f"{k} = {self.value(v)}" for k, v in kwargs.items())])

    def call(self, node):
        """The right side of the node's line."""
        f, args, kwargs = node.target, node.args, node.kwargs
        if node.op == "call_method":
            return f"{self.value(args[0])}.{f}({self.arguments(args[1:], kwargs)})"
        if node.op == "call_module":
            return f"{self.path(f)}({self.arguments(args, kwargs)})"
        if not kwargs and f in _INFIX and len(args) == 2:
            return f"{self.value(args[0])} {_INFIX[f]} {self.value(args[1])}"
        if not kwargs and f in _PREFIX and len(args) == 1:
            return f"{_PREFIX[f]}{self.value(args[0])}"
        if not kwargs and f is operator.getitem and len(args) == 2:
            return f"{self.value(args[0])}[{self.value(args[1])}]"
        if f is getattr and not kwargs and len(args) == 2 and str(args[1]).isidentifier():
            return f"{self.value(args[0])}.{args[1]}"
        return f"{self.function(f)}({self.arguments(args, kwargs)})"

    def path(self, target):
        text = self.root
        for part in target.split("."):
            text = f"{text}.{part}" if part.isidentifier() else f"getattr({text}, {part!r})"
        return text

    def note(self, node):
        text = node.meta.get("value_text") or value_text(node.meta.get("example_value", node.meta.get("val")))
        return f': "{text}"' if self.verbose and text else ""

    def line(self, node):
        note = self.note(node)
        if node.op == "get_attr":
            return f"{node.name}{note} = {self.path(node.target)}"
        args = node.args
        if node.op == "call_function" and not node.kwargs and len(args) >= 2 and isinstance(args[0], Node):
            first = self.value(args[0])
            if node.target in IN_PLACE and len(args) == 2:
                return f"{first} {IN_PLACE[node.target]} {self.value(args[1])};  {node.name}{note} = {first}"
            if node.target is operator.setitem and len(args) == 3:
                return f"{first}[{self.value(args[1])}] = {self.value(args[2])};  {node.name} = {first}"
        kind = f" : {type_text(node.type)}" if node.type is not None and not self.verbose else ""
        return f"{node.name}{note}{kind} = {self.call(node)}"


def value_text(value):
    """What is known of a value: f32[2, 3]; empty if nothing is."""
    if isinstance(value, _C.Tensor):
        return f"{_short(value.dtype)}[{', '.join(map(_C._sym_text, value.shape))}]"
    return ""


def _short(dtype):
    name = str(dtype).rsplit(".", 1)[-1]
    if name == "bool":
        return "b8"
    for long, short in (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u"), ("int", "i")):
        if name.startswith(long):
            return short + name[len(long):]
    return name


def _last_uses(graph):
    """Node -> the values that nothing reads after it."""
    last, out = set(), {}
    for node in reversed(graph.nodes):
        done = []
        for used in node.all_input_nodes:
            if used not in last:
                last.add(used)
                done.append(used)
        if node not in last and node.op not in ("placeholder", "output"):
            done.append(node)
        out[node] = done
    return out


def _place(stack_trace):
    """The comment that says which line of the program the lines below come from."""
    lines = [line.strip() for line in (stack_trace or "").strip().split("\n")]
    for k in range(len(lines) - 1, -1, -1):
        if lines[k].startswith("File "):
            file, line, name = lines[k][len("File "):].split(", ")
            code = f", code: {lines[k + 1]}" if k + 1 < len(lines) else ""
            return f'# File: {file.strip(chr(34))}:{line.removeprefix("line ")} {name}{code}'
    return "# No stacktrace found for following nodes"


def python_code(graph, root="self", verbose=False):
    """The text of forward(), and the names that it needs. verbose: with what is known of each value, and
    where the lines come from.
    """
    w = _Writer(root, verbose)
    parameters, lines, last_uses, place = [root], [], _last_uses(graph), None
    returned = False
    for node in graph.nodes:
        if node.op == "placeholder":
            note = w.note(node) or (f" : {type_text(node.type)}" if node.type is not None else "")
            default = f" = {w.value(node.args[0])}" if node.args else ""
            parameters.append(f"{node.target}{note}{default}")
            if node.target.lstrip("*") != node.name:
                lines.append(f"{node.name} = {node.target.lstrip('*')}")
            continue
        if node.op == "output":
            lines.append(f"return {w.value(node.args[0])}")
            returned = True
            continue
        if verbose and (here := _place(node.stack_trace)) != place:
            lines += ["", here]
            place = here
        done = [n.name for n in last_uses[node]]
        lines.append(w.line(node) + (f";  {' = '.join(done)} = None" if done else ""))
    if not lines:
        lines = ["pass"]
    elif not returned:
        lines.append("return None")
    body = "".join(f"    {line}\n" if line else "\n" for line in lines)
    return PythonCode(f"\n\n\ndef forward({', '.join(parameters)}):\n{body}", w.globals)
