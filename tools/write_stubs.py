"""Type stubs of a built package, from the operators' schemas and from the functions that are there.

    python tools/write_stubs.py build/python        writes flambeau/_C.pyi and flambeau/__init__.pyi

`_C.pyi` has the compiled part: the Tensor class with every method, and every operator as a function, one
overload for each schema, with its documentation. `__init__.pyi` has the names of the package; a function that
is Python is what its own file says.
"""
import argparse
import ast
import functools
import inspect
import keyword
import pathlib
import re
import sys
import types

# name.overload(type name, ...) -> type; other signatures have no type before the first name.
SCHEMA = re.compile(r"^(\w+)(?:\.\w+)?\(((?:(?:\*, )?(?:[A-Z]\w*|int|str|float|bool)[^ ]* \w.*)?)\) -> (.+)$")
# The stub's own names for types: a method or a dtype is called float, int, bool, dtype, device ...
NAMES = """# Written by tools/write_stubs.py.
# Overloads are in the order in which a call tries them; one may be narrower than one before it.
# mypy: disable-error-code="overload-cannot-match, overload-overlap"
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

_bool = bool
_int = int
_float = float
_complex = complex
_str = str
"""
LATE_NAMES = """_dtype = dtype
_device = device
_layout = layout
_memory_format = memory_format
_Size = Size
_Device = device | _str | _int
"""
TYPES = {
    "Tensor": "Tensor", "Scalar": "_complex", "int": "_int", "SymInt": "_int", "float": "_float",
    "bool": "_bool", "str": "_str", "ScalarType": "_dtype", "Device": "_Device",
    "MemoryFormat": "_memory_format", "Generator": "Generator", "Layout": "_layout",
}
COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
ARITHMETIC = {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
              "lshift", "rshift"}
# What properties and functions give that no schema describes.
RESULTS = {
    "__bool__": "_bool", "__float__": "_float", "__int__": "_int", "__index__": "_int", "__len__": "_int",
    "__complex__": "_complex", "__hash__": "_int", "__str__": "_str", "__repr__": "_str",
    "__iter__": "Iterator[Tensor]", "__reversed__": "Tensor", "shape": "_Size", "dtype": "_dtype",
    "device": "_device", "layout": "_layout", "requires_grad": "_bool", "grad": "Tensor | None",
    "is_contiguous": "_bool", "backward": "None", "untyped_storage": "UntypedStorage",
    **dict.fromkeys(("data", "H", "T", "mT", "mH", "real", "imag", "to", "requires_grad_", "detach_",
                     "tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "from_dlpack"), "Tensor"),
    **dict.fromkeys(("ndim", "itemsize", "nbytes", "_version", "dim", "numel", "element_size",
                     "storage_offset", "data_ptr"), "_int"),
}


def split(text):
    """At commas that stand outside of brackets and quotes."""
    parts, depth, quote, last = [], 0, "", 0
    for at, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[last:at].strip())
            last = at + 1
    return [p for p in [*parts, text[last:].strip()] if p]


def python_type(text, number=False):
    """Of an argument's type in a schema; number: a number may stand in a tensor's place."""
    text = re.sub(r"\([a-z]!?( -> \*)?\)", "", text)
    if text.endswith("?"):
        return python_type(text[:-1], number) + " | None"
    if array := re.match(r"(.*)\[(\d*)\]$", text):
        item = python_type(array[1])
        return f"{item} | Sequence[{item}]" if array[1] in ("int", "SymInt") else f"Sequence[{item}]"
    return "Tensor | _complex" if number and text == "Tensor" else TYPES.get(text, "Any")


def result_type(text, name, tuples):
    """Of what a schema returns; several named results are a tuple with these names."""
    text = re.sub(r"\([a-z]!?( -> \*)?\)", "", text)
    if not text.startswith("("):
        kind = text.split()[0]
        return "tuple[Tensor, ...]" if kind == "Tensor[]" else python_type(kind)
    parts = [p.split() for p in split(text[1:-1])]
    if not parts:
        return "None"
    if all(len(p) == 2 for p in parts) and not name.startswith("_"):
        fields = tuple((field, python_type(kind)) for kind, field in parts)
        return tuples.setdefault((name, fields), f"_{name}_{len(tuples)}")
    return f"tuple[{', '.join(result_type(p[0], name, tuples) for p in parts)}]"


def safe(name):
    return name + "_" if keyword.iskeyword(name) else name


class Parameter:
    def __init__(self, text, number):
        declared, _, self.default = text.partition("=")
        kind, self.name = declared.rsplit(" ", 1)
        self.kind, self.type = kind, python_type(kind, number)

    def text(self):
        return f"{safe(self.name)}: {self.type}" + (" = ..." if self.default else "")


def signatures(schema, method, tuples):
    """Parameters and result of each form in which the operator can be called."""
    name, arguments, returns = SCHEMA.match(schema).groups()
    texts = split(arguments)
    star = texts.index("*") if "*" in texts else len(texts)
    # A number may stand for every tensor but the first.
    first = [Parameter(t, k > 0) for k, t in enumerate(texts[:star])]
    named = [Parameter(t, False) for t in texts[star + 1:]]
    out = result_type(returns, name, tuples)
    keywords = {p.name: p.text() for p in named}
    # What a call takes beyond the schema.
    if {"dtype", "device"} <= keywords.keys():
        keywords.setdefault("requires_grad", "requires_grad: _bool = ...")
        keywords.setdefault("layout", "layout: Any = ...")
    if out == "Tensor" and not re.search(r"\([a-z]!\)", arguments):
        keywords.setdefault("out", "out: Tensor | None = ...")
    keywords = list(keywords.values())
    self = []
    if method:
        # The tensor takes the place of the argument `self`, which need not be the first.
        tensors = [p for p in first if re.match(r"Tensor(\([a-z]!?\))?\??$", p.kind)]
        bound = [p for p in tensors if p.name == "self"] or [p for p in tensors if p is first[0]]
        if not bound:
            return
        self = ["self"]
        first.remove(bound[0])
    positional = [p.text() for p in first]
    yield [*self, *positional, *(["*", *keywords] if keywords else [])], out
    # x.view(2, 3): sizes one by one.
    if len(first) == 1 and re.match(r"(SymInt|int)\[\d*\]$", first[0].kind):
        yield [*self, f"*{safe(first[0].name)}: _int", *keywords], out


def documented(lines, indent):
    """The documentation as a docstring."""
    text = "\n\n".join(lines).replace("\\", "\\\\").replace('"""', "'''").strip()
    return f'\n{indent}    """{text}"""' if text else " ..."


def operator_text(name, document, tuples, method=False):
    """An operator by the schemas that its documentation begins with each paragraph."""
    indent = "    " if method else ""
    schemas, rest = [], []
    for paragraph in document.split("\n\n"):
        (schemas if SCHEMA.match(paragraph) else rest).append(paragraph)
    if not schemas:
        return ""
    forms = []
    for schema in schemas:
        for form in signatures(schema, method, tuples):
            if form not in forms:
                forms.append(form)
    text = ""
    for number, (parameters, result) in enumerate(forms):
        text += f"{indent}@overload\n" if len(forms) > 1 else ""
        text += f"{indent}def {name}({', '.join(parameters)}) -> {result}:"
        text += documented(rest, indent) if number == 0 else " ..."
        text += "\n"
    return text


def plain_text(name, value, method=False, results=RESULTS):
    """A function that is no operator: its names of arguments, as far as they can be seen."""
    indent = "    " if method else ""
    result = results.get(name, "Any")
    parameters = "self, *args: Any, **kwargs: Any" if method else "*args: Any, **kwargs: Any"
    try:
        signature = inspect.signature(value)
        parameters = ", ".join(plain_parameters(signature))
    except (TypeError, ValueError):
        pass
    return f"{indent}def {name}({parameters}) -> {result}: ...\n"


def plain_parameters(signature):
    star = False
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            star = True
            yield f"*{p.name}: Any"
        elif p.kind is p.VAR_KEYWORD:
            yield f"**{p.name}: Any"
        else:
            if p.kind is p.KEYWORD_ONLY and not star:
                star = True
                yield "*"
            bare = p.name == "self"
            yield (p.name if bare else f"{p.name}: Any") + ("" if p.default is p.empty else " = ...")


def dunder_text(name):
    short = name.strip("_")
    if name in COMPARISONS:
        return f"    def {name}(self, other: Any) -> Tensor: ...  # type: ignore[override]\n"
    if short in ARITHMETIC or short[1:] in ARITHMETIC and short[0] in "ri":
        return f"    def {name}(self, other: Any) -> Tensor: ...\n"
    if short in ("neg", "pos", "abs", "invert"):
        return f"    def {name}(self) -> Tensor: ...\n"
    written = {
        "__getitem__": "(self, index: Any) -> Tensor",
        "__setitem__": "(self, index: Any, value: Any) -> None",
        "__contains__": "(self, element: Any) -> _bool", "__format__": "(self, format_spec: _str) -> _str",
    }.get(name, f"(self) -> {RESULTS.get(name)}")
    return f"    def {name}{written}: ...\n" if "None" not in written or name == "__setitem__" else ""


def tensor_text(Tensor, tuples):
    text = ["class Tensor:\n", "    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n"]
    for name in sorted(dir(Tensor)):
        value = inspect.getattr_static(Tensor, name)
        if name.startswith("__"):
            text.append(dunder_text(name))
        elif isinstance(value, (property, types.GetSetDescriptorType)):
            kind = RESULTS.get(name, "_bool" if name.startswith("is_") else "Any")
            text.append(f"    {name}: {kind}\n")
        elif callable(getattr(Tensor, name)):
            method = getattr(Tensor, name)
            written = operator_text(name, method.__doc__ or "", tuples, method=True)
            text.append(written or plain_text(name, method, method=True))
    return "".join(text)


def class_text(name, cls):
    """A class of the compiled part by the names that it has."""
    text = [f"class {name}:\n", "    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n"]
    for member, value in sorted(vars(cls).items()):
        if member.startswith("__") or keyword.iskeyword(member):
            continue
        if isinstance(value, (property, types.GetSetDescriptorType)):
            text.append(f"    {member}: Any\n")
        elif callable(value):
            text.append(f"    def {member}(self, *args: Any, **kwargs: Any) -> Any: ...\n")
    return "".join(text)


def compiled_text(fl):
    tuples, classes, functions, values = {}, [], [], []
    for name, value in sorted(vars(fl._C).items()):
        if name.startswith("__") or keyword.iskeyword(name) or name == "Tensor":
            continue
        if isinstance(value, type):
            size = "class Size(tuple[_int, ...]):\n    def numel(self) -> _int: ...\n"
            classes.append(size if name == "Size" else class_text(name, value))
        elif callable(value):
            functions.append(operator_text(name, value.__doc__ or "", tuples) or plain_text(name, value))
        elif not isinstance(value, types.ModuleType):
            values.append(f"{name}: {kind_of(value, '_')}\n")
    tensor = tensor_text(fl.Tensor, tuples)
    named = [f"class {label}(NamedTuple):\n" + "".join(f"    {safe(n)}: {t}\n" for n, t in fields)
             for (_, fields), label in tuples.items()]
    return "\n".join([NAMES, *classes, LATE_NAMES, *named, tensor, "".join(values), "".join(functions)])


def kind_of(value, prefix):
    """The type of a constant, as the stub calls it."""
    kind = type(value).__name__
    return prefix + kind if kind in ("dtype", "layout", "memory_format") else "Any"


def package_text(fl):
    """Every public name of the package, and where it comes from."""
    lines, here = [], pathlib.Path(fl.__file__).parent
    for name in sorted(dir(fl)):
        if name.startswith("__") and name != "__version__" or keyword.iskeyword(name):
            continue
        try:
            value = getattr(fl, name)
        except AttributeError:
            continue
        module = getattr(value, "__module__", None)
        if isinstance(value, types.ModuleType):
            parent, _, last = value.__name__.rpartition(".")
            if parent == fl.__name__ and last == name and name != "_C":
                lines.append(f"from . import {name} as {name}\n")
        elif value is not None and vars(fl._C).get(name) is value:
            lines.append(f"from ._C import {name} as {name}\n")
        elif isinstance(module, str) and name in names_of(here, module):
            lines.append(f"from .{module.removeprefix(fl.__name__ + '.')} import {name} as {name}\n")
        elif callable(value) and callable(vars(fl._C).get(name)):  # Python around the compiled function
            lines.append(f"from ._C import {name} as {name}\n")
        elif callable(value) and not isinstance(value, type):
            lines.append(plain_text(name, value, results={}))
        else:
            lines.append(f"{name}: {kind_of(value, '_C.')}\n")
    imports = [x for x in lines if x.startswith("from")]
    rest = [x for x in lines if not x.startswith("from")]
    return "".join(["# Written by tools/write_stubs.py.\nfrom typing import Any\n\nfrom . import _C as _C\n",
                    *sorted(imports), "\n", *rest])


@functools.cache
def names_of(folder, module):
    """What the source of a module of the package defines; names that it makes while it runs are not there."""
    path = folder.parent / (module.replace(".", "/") + ".py")
    if not module.startswith(folder.name + ".") or not path.exists():
        return set()
    body = ast.parse(path.read_text()).body
    return {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("folder", type=pathlib.Path, help="that has the package, flambeau/")
    folder = parser.parse_args().folder.resolve()
    sys.path.insert(0, str(folder))
    import flambeau as fl

    for name, text in (("_C.pyi", compiled_text(fl)), ("__init__.pyi", package_text(fl))):
        path = folder / "flambeau" / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
