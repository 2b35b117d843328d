"""A region may end at any instruction: every program, with a break asked for at some of its instructions.

FLAMBEAU_BREAKS=N: at every N-th instruction (by default 97 of code units; 1 tries all of them).
"""
import os
import types

import pytest
from observe import observe
from program import files, names

import flambeau

pytestmark = pytest.mark.skipif(not flambeau._C._has_capture,
                                reason="capture needs another version of CPython")
EVERY = int(os.environ.get("FLAMBEAU_BREAKS", "97"))
PROGRAMS = [(path, name) for path in files() for name in names(path)]


def code_of(target):
    target = getattr(target, "__func__", target)
    if not isinstance(target, types.FunctionType):
        target = type(target).forward if hasattr(target, "forward") else type(target).__call__
    return target.__code__


@pytest.mark.parametrize("path, name", PROGRAMS, ids=[f"{path.stem}.{name}" for path, name in PROGRAMS])
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
