"""The switches that products and convolutions on GPUs read."""
import pytest

import flambeau as fl

compiled = pytest.mark.skipif(not fl._C._cuda.is_compiled, reason="built without CUDA")


@pytest.fixture(autouse=True)
def switches():
    yield
    fl.set_float32_matmul_precision("highest")
    fl.backends.cudnn.allow_tf32 = True


def allowed(part):
    return fl._C._cuda.tf32_allowed(getattr(fl._C._cuda.Tf32, part))


@compiled
def test_products():
    assert not allowed("Matmul") and not fl.backends.cuda.matmul.allow_tf32
    fl.backends.cuda.matmul.allow_tf32 = True
    assert allowed("Matmul") and fl.get_float32_matmul_precision() == "high"
    fl.set_float32_matmul_precision("highest")
    assert not allowed("Matmul") and not fl.backends.cuda.matmul.allow_tf32
    fl.set_float32_matmul_precision("medium")
    assert allowed("Matmul") and fl.backends.cuda.matmul.allow_tf32


@compiled
def test_convolutions():
    assert allowed("Convolution") and fl.backends.cudnn.allow_tf32
    fl.backends.cudnn.allow_tf32 = False
    assert not allowed("Convolution")
    with fl.backends.cudnn.flags(enabled=True, allow_tf32=True):
        assert allowed("Convolution")
    assert not allowed("Convolution") and not fl.backends.cudnn.allow_tf32
    assert fl.backends.cudnn.set_flags(_allow_tf32=True)[-1] is False
    assert allowed("Convolution")
    with pytest.raises(ZeroDivisionError), fl.backends.cudnn.flags(allow_tf32=False):
        1 / 0
    assert allowed("Convolution")


def test_without_a_device_cudnn_is_not_available():
    if fl.cuda.device_count() == 0:
        assert not fl.backends.cudnn.is_available()
