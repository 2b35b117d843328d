"""Every test of known results runs plainly and compiled."""
import pytest
from compilers import COMPILE, identity


@pytest.fixture(params=[identity, COMPILE], ids=["eager", "compiled"])
def compile_fn(request):
    return request.param
