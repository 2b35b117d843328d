"""Every program of programs/ gives compiled what it gives plainly: observe.py says what that takes in."""
import pytest
from compilers import COMPILE
from observe import observe
from program import files, names

PROGRAMS = [(path, name) for path in files() for name in names(path)]


@pytest.mark.parametrize("path, name", PROGRAMS, ids=[f"{path.stem}.{name}" for path, name in PROGRAMS])
def test_program(path, name):
    assert not (differences := observe(path, name, COMPILE)), "\n".join(differences[:10])


def test_there_are_enough_programs():
    assert len(PROGRAMS) >= 300 and len(set(PROGRAMS)) == len(PROGRAMS)
