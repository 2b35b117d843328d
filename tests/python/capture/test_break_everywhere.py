"""A region may end at any instruction, and any instruction may be captured.

Each program runs with a break asked for at some of its instructions, and under trials of
cpython_tests.TRIALS, in which regions are of one instruction, or few, without need for an operator.
FLAMBEAU_BREAKS=N: at every N-th instruction (by default 97 of code units; 1: at all, and under all trials).
FLAMBEAU_CPYTHON_TESTS=all, or names of modules: which of CPython's own tests run (by default: a few).
"""
import os
import types

import cpython_tests
import pytest
from observe import observe, observe_apart
from program import files, names

import flambeau

pytestmark = pytest.mark.skipif(not flambeau._C._has_capture,
                                reason="capture needs another version of CPython")
EVERY = int(os.environ.get("FLAMBEAU_BREAKS", "97"))
PROGRAMS = [(path, name) for path in files() for name in names(path)]
IDS = [f"{path.stem}.{name}" for path, name in PROGRAMS]
TRIALS = list(cpython_tests.TRIALS.items())
MODULES = os.environ.get("FLAMBEAU_CPYTHON_TESTS", "scope with generator_stop listcomps").split()


def code_of(target):
    target = getattr(target, "__func__", target)
    if not isinstance(target, types.FunctionType):
        target = type(target).forward if hasattr(target, "forward") else type(target).__call__
    return target.__code__


@pytest.mark.parametrize("path, name", PROGRAMS, ids=IDS)
def test_program(path, name):
    units, at = None, sum(map(ord, name)) % EVERY
    while units is None or at < units:
        def broken(function):
            nonlocal units
            units = len(code_of(function).co_code) // 2
            return flambeau._C._capture(function, break_at=at)

        differences = observe(path, name, broken)
        assert not differences, f"break at {at}: " + "\n".join(differences[:10])
        at += EVERY


# One process that runs all of them was seen to stand still: in the long run alone until that is understood.
@pytest.mark.skipif("FLAMBEAU_BREAKS" not in os.environ, reason="a part of make test-breaks")
@pytest.mark.parametrize("path, name", PROGRAMS, ids=IDS)
def test_trials(path, name):
    """Frames of the standard library are captured, too: a process of its own keeps their changes apart."""
    one = sum(map(ord, name)) % len(TRIALS)
    for trial, options in TRIALS if EVERY == 1 else TRIALS[one : one + 1]:
        differences = observe_apart(path, name, lambda f: flambeau._C._capture(f, **options))
        assert not differences, f"{trial}: " + "\n".join(differences[:10])


@pytest.mark.skipif("FLAMBEAU_BREAKS" not in os.environ, reason="a part of make test-breaks, as the trials")
@pytest.mark.parametrize("module", cpython_tests.MODULES if MODULES == ["all"] else MODULES)
def test_cpython(module):
    pytest.importorskip(f"test.test_{module}", reason="this Python comes without its tests")
    trials = list(cpython_tests.TRIALS) if MODULES == ["all"] else ["whole", "single"]
    count, found = cpython_tests.run([module], trials, show=lambda text: None)
    assert not found, "\n".join(found[:10])
    assert count


def test_a_trial_captures_what_has_no_operators():
    compiled = flambeau._C._capture(lambda n: [n + 1, str(n)], everything=True, longest=1)
    assert compiled(1) == [2, "1"]
    assert len(compiled.explain()["graphs"]) > 2
