"""Every test of known results runs plainly and compiled."""
import pytest
from compilers import COMPILE, identity

# Compiled, these are not right yet: (start of a test's name, what is missing). A line goes when its tests pass.
MISSING = [
    ("test_hooks_come_and_go_between_calls[compiled-False-add_backward_hook", "backward hooks"),
    ("test_hooks_come_and_go_between_calls[compiled-True-add_backward_hook", "backward hooks"),
    ("test_resize_of_an_alias[compiled", "an alias that is resized"),
]


@pytest.fixture(params=[identity, COMPILE], ids=["eager", "compiled"])
def compile_fn(request):
    return request.param


def pytest_collection_modifyitems(items):
    for item in items:
        for start, what in MISSING:
            if COMPILE is not identity and item.name.startswith(start):
                item.add_marker(pytest.mark.xfail(reason=what, strict=True))
