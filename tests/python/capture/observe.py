"""Runs a program plainly and through a compile function, and says everything in which the two differ.

    python observe.py [--compile] [--list] [PATTERN ...]    each program in a process of its own

Each of the two runs has a world of its own: the program's file, loaded anew. A run is a sequence of calls, of
schedule(); after each, everything that the program can reach is described (describe.py): the result, the
arguments, globals, closures, attributes, output, warnings, exceptions with their lines, the state of random
numbers, modes, and gradients.
"""
import contextlib
import io
import json
import logging
import math
import os
import random
import signal
import sys
import warnings

from program import Program, files, load, names  # first: it chooses the library

import flambeau as torch
import numpy
from compilers import identity
from describe import Describer, is_a


def observe(path, name, compile, tolerance=0.0):
    """The differences, as text, between a program as it is and compiled; none where all is equal."""
    return compare(load(path, name), load(path, name), compile, tolerance)


def observe_apart(path, name, compile, seconds=120):
    """The same in a process of its own: a crash and a loop without end are differences too."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        found = ["an error of the test itself"]
        try:
            found = observe(path, name, compile)
        finally:
            os.write(writer, json.dumps([text[:2000] for text in found[:10]]).encode())
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        found = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return [f"ended by {signal.Signals(os.WTERMSIG(status)).name}"]
    return json.loads(found)


def compare(plain: Program, other: Program, compile, tolerance=0.0):
    expected, got = run(plain, identity), run(other, compile)
    differences = []
    for (step, lines), (_, other_lines) in zip(expected, got):
        differences += [f"{step}: {text}" for text in line_differences(lines, other_lines, tolerance)]
        if differences:
            break  # what follows is only a consequence
    return differences


# One run --------------------------------------------------------------------------------------------------
def schedule(program):
    """Pairs (what call, arguments): the same arguments twice, new ones, the first again, then changes."""
    def new_args(make=program.inputs[0]):
        seed()
        return make()

    args = new_args()
    yield "first call", args
    yield "second call with the same arguments", args
    for i, make in enumerate((*program.inputs, program.inputs[0])):
        yield f"call with new arguments {i}", new_args(make)
    for i, change in enumerate(program.changes):
        args = new_args()
        yield f"call before change {i}", args
        program.change(change, args)
        yield f"call after change {i}", args
        args = new_args()
        program.change(change, args)
        yield f"call with new arguments after change {i}", args


def run(program, compile):
    """Descriptions [(step, lines)] of all calls, of gradients after each, and of all results at the end."""
    describer, descriptions, results = Describer(program.module.__name__), [], []
    compiled = compile(program.target)
    try:
        for step, args in schedule(program):
            reached = dict(args=args, target=program.target)
            describer.describe(**reached)  # numbers what is there: an object in its place has another number
            seen = call(compiled, args, program.module)
            results.append(seen["result"])
            descriptions.append((step, describer.describe(**seen, **reached)))
            if gradients := backward(seen["result"]):
                lines = describer.describe(backward=gradients, **reached)
                descriptions.append((f"gradients of {step}", lines))
            restore_modes()
        descriptions.append(("results at the end", describer.describe(results=results)))
    finally:
        restore_modes()
    return descriptions


def call(function, args, module):
    """What one call shows, apart from what it changes in objects."""
    seed()
    out, logged = io.StringIO(), Records(module.__file__)
    result = error = None
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as warned, logged:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as raised:
            error = raised
    own = [f"{w.category.__name__}: {w.message}" for w in warned if w.filename == module.__file__]
    return dict(error=error, result=result, printed=out.getvalue(), logged=logged.messages, warned=own,
                modes=modes(), random_state=random_states())


def modes():
    return [torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
            torch.get_default_dtype()]


def seed():
    torch.manual_seed(7)
    random.seed(7)
    numpy.random.seed(7)


def random_states():
    """The next number of each generator, which stands for its state."""
    return [torch.rand(1).item(), random.random(), float(numpy.random.random())]


def restore_modes():
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)


class Records(logging.Handler):
    """Takes what a file logs while it is entered."""

    def __init__(self, path):
        super().__init__()
        self.path, self.messages = path, []

    def emit(self, record):
        if record.pathname == self.path:
            self.messages.append(f"{record.levelname}: {record.getMessage()}")

    def __enter__(self):
        logging.getLogger().addHandler(self)

    def __exit__(self, *error):
        logging.getLogger().removeHandler(self)


def tensors_of(x, found, met):
    if is_a(x, torch.Tensor):
        found.append(x)
    elif is_a(x, (dict, list, tuple)) and id(x) not in met:
        met.add(id(x))
        for value in dict.values(x) if is_a(x, dict) else x:
            tensors_of(value, found, met)
    return found


def backward(result):
    """Runs the gradient of a weighted sum of the results, where they have one: "", or how that went."""
    found = [x for x in tensors_of(result, [], set()) if x.requires_grad and not x.is_leaf]
    if not found:
        return ""
    try:
        weights = [(torch.arange(x.numel()) % 4 + 1).to(x.dtype).reshape(x.shape) for x in found]
        sum((x * weight).sum() for x, weight in zip(found, weights)).backward()
    except RuntimeError as error:
        return type(error).__name__
    return "done"


# Differences ----------------------------------------------------------------------------------------------
def line_differences(expected, got, tolerance):
    for (path, text), (other_path, other_text) in zip(expected, got):
        if path != other_path:
            yield f"{path} is {text!r} plainly; compiled, {other_path} is {other_text!r}"
            return
        if not same(text, other_text, tolerance):
            yield f"{path}: {text} plainly, {other_text} compiled"
    if len(expected) != len(got):
        path, text = max(expected, got, key=len)[min(len(expected), len(got))]
        yield f"{path}: {text} only {'plainly' if len(expected) > len(got) else 'compiled'}"


def same(a, b, tolerance):
    """Equality to the bit, or of floats up to a tolerance relative to the larger of 1 and the value."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b))
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and tolerance and math.isfinite(a) and math.isfinite(b):
        return abs(a - b) <= tolerance * max(1, abs(a))
    if isinstance(a, complex) and tolerance:
        return same(a.real, b.real, tolerance) and same(a.imag, b.imag, tolerance)
    return repr(a) == repr(b)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    compile = torch.compile if "--compile" in sys.argv else identity
    bad = count = 0
    for path in files():
        for name in names(path):
            if words and not any(word in f"{path.stem}.{name}" for word in words):
                continue
            count += 1
            if "--list" in sys.argv:
                print(f"{path.stem}.{name}")
                continue
            if differences := observe_apart(path, name, compile):
                bad += 1
                print(f"{path.stem}.{name}: {differences[0]}", *differences[1:4], sep="\n    ", flush=True)
    print(f"{count} programs, {bad} differ")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
