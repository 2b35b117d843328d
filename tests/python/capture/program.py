"""What a program is: a function, inputs for it, and what may change between its calls.

    @program(lambda: (torch.ones(3), [1, 2]), lambda: (torch.ones(4), [3]))
    def add_all(x, items):
        return [x + item for item in items]

A file of programs/ holds those of one family. It imports flambeau; with FLAMBEAU_PROGRAMS_LIB=torch it gets
PyTorch in its place.
"""
import importlib
import marshal
import os
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

LIBRARY = os.environ.get("FLAMBEAU_PROGRAMS_LIB", "flambeau")
FOLDER = Path(__file__).resolve().parent / "programs"


@dataclass
class Program:
    name: str
    target: Any  # the function; for a class that was marked, an instance of it
    inputs: tuple[Callable, ...]  # each call of one makes equal, new arguments
    changes: tuple[Callable, ...]  # each alters the world, given the target's arguments (an instance first)
    module: types.ModuleType  # where it is defined, loaded for this program alone

    def change(self, change, args):
        own = () if isinstance(self.target, types.FunctionType) else (self.target,)
        change(*own, *args)


marked: list[tuple] = []


def program(*inputs, change=()):
    """Marks a function, or a class whose instance is called, as a program.

    inputs: functions that return a tuple of new arguments, equal ones each time. The first serves most calls.
    change: a function or a list of them. Each gets the arguments that the next call will have, and alters
        what it likes; it runs more than once.
    """

    def mark(target):
        marked.append((target, inputs, tuple(change) if isinstance(change, (list, tuple)) else (change,)))
        return target

    return mark


def use_library(name):
    """From here on, `import flambeau` and imports of its parts give the library of this name."""
    importlib.import_module(name)
    for module in list(sys.modules):
        if module == name or module.startswith(name + "."):
            sys.modules["flambeau" + module[len(name) :]] = sys.modules[module]


compiled_files: dict[Path, bytes] = {}


def load_module(path):
    """A new module made from a file, with code objects of its own, and what it marked."""
    if path not in compiled_files:
        compiled_files[path] = marshal.dumps(compile(path.read_text(), str(path), "exec"))
    return load_code(f"programs.{path.stem}", str(path), marshal.loads(compiled_files[path]))


def load_code(name, path, code):
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module  # dataclasses look their module up
    marked.clear()
    exec(code, module.__dict__)
    return module, list(marked)


def names(path):
    """The names of a file's programs, in order."""
    return [target.__name__ for target, _, _ in load_module(path)[1]]


def load(path, name):
    """A program in a world of its own: nothing that a call changes reaches another one."""
    module, found = load_module(path)
    return make(module, next(mark for mark in found if mark[0].__name__ == name))


def make(module, mark):
    target, inputs, changes = mark
    return Program(target.__name__, target() if isinstance(target, type) else target, inputs, changes, module)


def files():
    return sorted(FOLDER.glob("*.py"))


if LIBRARY != "flambeau":
    use_library(LIBRARY)
