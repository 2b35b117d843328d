"""Runs CPython's own tests with each test function compiled, and says where the outcome is another one.

    python cpython_tests.py [--trial NAME] [--seconds N] [PATTERN ...]    default: all modules and trials

The interpreter has them in its library, as the package `test`; Linux distributions leave them out. Each test
runs in a process of its own, plainly and under each trial: what it asserts compiled is what it asserts
plainly. A test that does not pass plainly here is left out.
"""
import contextlib
import importlib
import io
import json
import os
import resource
import signal
import sys
import unittest
import warnings

import flambeau

# Where regions end whatever is there; frames of the standard library are captured as well.
TRIALS = {
    "whole": dict(everything=True),
    "single": dict(everything=True, longest=1),
    "other": dict(everything=True, longest=1, break_at=0),
    "short": dict(everything=True, longest=3),
}
MODULES = """
    abc augassign baseexception binop bisect bool builtin call class collections compare complex contains
    contextlib copy dataclasses decorators defaultdict deque descr descrtut dict dictcomps dictviews
    dynamicclassattribute enum enumerate eof exception_hierarchy exception_variations exceptions extcall
    fstring funcattrs functools generator_stop generators genericalias genericclass genexps global grammar
    hash heapq index int isinstance iter itertools keywordonlyarg list listcomps long_future math metaclass
    named_expressions opcodes operator ordered_dict patma pep646_syntax positional_only_arg pow property raise
    range reprlib richcmp scope set setcomps slice sort string subclassinit super syntax textwrap tuple
    type_annotations typechecks types unary unpack unpack_ex userdict userlist userstring weakref weakset with
    yield_from""".split()


def cases(module):
    """The test methods of a module: pairs (class, name)."""
    loaded = importlib.import_module(f"test.test_{module}")
    for suite in unittest.TestLoader().loadTestsFromModule(loaded):
        for case in flat(suite):
            if isinstance(case, unittest.TestCase) and not isinstance(case, unittest.loader._FailedTest):
                yield case


def flat(suite):
    for part in suite if isinstance(suite, unittest.TestSuite) else [suite]:
        if isinstance(part, unittest.TestSuite):
            yield from flat(part)
        else:
            yield part


def outcome(case, trial):
    """How a test ends: a text, the same for equal endings."""
    if trial:
        name = case._testMethodName
        compiled = flambeau._C._capture(getattr(type(case), name), **trial)
        setattr(case, name, compiled.__get__(case))
    result = unittest.TestResult()
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.run(result)
    found = [f"{kind}: {text.strip()}" for kind in ("errors", "failures", "skipped", "expectedFailures")
             for _, text in getattr(result, kind)]
    return "; ".join(found) or "passed"


def outcome_apart(case, trial, seconds=60):
    """The same, in a process of its own, with so many seconds of the processor."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.close(reader)
        text = "an error of the runner itself"
        try:
            text = outcome(case, trial)
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        finally:
            os.write(writer, json.dumps(text[-1500:]).encode())
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        found = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return json.loads(found)


def differences(case, trials, seconds=60):
    """Texts that say in what a test differs under each trial; None if it does not pass plainly."""
    if outcome_apart(case, None, seconds) != "passed":
        return None
    ends = ((name, outcome_apart(case, TRIALS[name], seconds)) for name in trials)
    return [f"{case.id()} ({name}): {end}" for name, end in ends if end != "passed"]


def is_wanted(case, patterns):
    return not patterns or any(p in case.id() for p in patterns)


def run(modules, trials, patterns=(), seconds=60, show=print):
    """Runs the tests of modules; gives how many ran and the texts of all differences."""
    count, found = 0, []
    for module in modules:
        try:
            wanted = [case for case in cases(module) if is_wanted(case, patterns)]
        except (ImportError, unittest.SkipTest):
            continue  # another version of Python has it
        for case in wanted:
            texts = differences(case, trials, seconds)
            count += texts is not None
            for text in texts or ():
                show(text)
            found += texts or ()
    return count, found


def main():
    words = sys.argv[1:]

    def option(name, default):
        if name not in words:
            return default
        at = words.index(name)
        value = words[at + 1]
        del words[at : at + 2]
        return value

    trials = option("--trial", ",".join(TRIALS)).split(",")
    seconds = int(option("--seconds", "60"))
    modules = [m for m in MODULES if m in words] or MODULES
    patterns = [word for word in words if word not in MODULES]
    count, found = run(modules, trials, patterns, seconds, lambda text: print(text, flush=True))
    print(f"{count} tests, {len(found)} differences, of {', '.join(trials)}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
