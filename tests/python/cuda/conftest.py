"""Tests on a CUDA device: a real one, or the stand-in for its driver that FLAMBEAU_CUDA_DRIVER names."""
import os

import pytest

import flambeau as fl

FAKE = "fake" in os.environ.get("FLAMBEAU_CUDA_DRIVER", "")


def pytest_collection_modifyitems(config, items):
    if fl.cuda.is_available():
        return
    for item in items:
        if item.path.parent.name == "cuda":
            item.add_marker(pytest.mark.skip(reason=f"no CUDA device: {fl._C._cuda.why()}"))


@pytest.fixture(autouse=True)
def full_precision(request):
    """No TF32 where results are compared with the CPU's."""
    compares = request.module.__name__.endswith(("test_cuda_operators", "test_cuda_training"))
    before = fl.backends.cudnn.allow_tf32
    if compares:
        fl.backends.cudnn.allow_tf32 = False
    yield
    fl.backends.cudnn.allow_tf32 = before
