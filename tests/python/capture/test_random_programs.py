"""Random programs give compiled what they give plainly.

FLAMBEAU_RANDOM_PROGRAMS: how many (default 50). FLAMBEAU_RANDOM_SEED: which ones (default 0); a failure shows
the seed and the smallest program that Hypothesis finds.
"""
import os

import pytest

pytest.importorskip("hypothesis", reason="hypothesis, of tools/requirements.txt, is not installed")

from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from compilers import COMPILE  # noqa: E402
from observe import compare  # noqa: E402
from program import load_code, make  # noqa: E402
from random_programs import programs  # noqa: E402

COUNT = int(os.environ.get("FLAMBEAU_RANDOM_PROGRAMS", 50))
SEED = int(os.environ.get("FLAMBEAU_RANDOM_SEED", 0))
QUIET = dict(deadline=None, database=None, suppress_health_check=list(HealthCheck))


def world(source):
    code = compile(source, "random_program.py", "exec")
    module, (mark,) = load_code("programs.random", "random_program.py", code)
    return make(module, mark)


def check(source, compile):
    differences = compare(world(source), world(source), compile)
    assert not differences, "\n".join([f"seed {SEED}", source, *differences[:10]])


@seed(SEED)
@settings(max_examples=COUNT, **QUIET)
@given(programs())
def test_random_program(source):
    check(source, COMPILE)


def first_result_for_ever(function):
    results = []
    return lambda *args: results[0] if results else results.append(function(*args)) or results[0]


def without_mutation(function):
    return lambda x, y, n, items, d, p: function(x, y, n, list(items), d, p)


@pytest.mark.parametrize("wrong", [first_result_for_ever, without_mutation])
def test_random_programs_find_wrong_compilers(wrong):
    @seed(SEED)
    @settings(max_examples=100, phases=[Phase.generate], **QUIET)
    @given(programs())
    def finds(source):
        check(source, wrong)

    with pytest.raises(AssertionError, match="plainly"):
        finds()
