"""Every operator on a CUDA device against the CPU: values, dtypes, layouts, gradients, errors, compiled."""
import os

import numpy as np
import pytest

import flambeau as fl
from flambeau import _C

SEED = 2026
FAKE = "fake" in os.environ.get("FLAMBEAU_CUDA_DRIVER", "")
# The stand-in for the driver computes as the CPU does. A GPU's libraries have orders of their own, and long reductions
# have more partial results there.
TOLERANCE = dict.fromkeys((fl.float32, fl.complex64), 2e-5) | {fl.float16: 4e-3, fl.bfloat16: 3e-2} | dict.fromkeys(
    (fl.float64, fl.complex128), 1e-10)
DTYPES = [fl.bool, fl.uint8, fl.int8, fl.int16, fl.int32, fl.int64, fl.float16, fl.bfloat16, fl.float32,
          fl.float64, fl.complex64, fl.complex128]
if FAKE:
    DTYPES = [fl.bool, fl.int64, fl.bfloat16, fl.float32, fl.complex64]
OPERATORS = {o["full_name"]: o for o in _C._operators() if o["functional"] is None}
# Elements are not initialised; the device is the CPU whatever the arguments' is.
LEFT_OUT = ("empty", "new_empty", "_empty", "linspace", "logspace")
# The stand-in reads no kernel that has an end of int64 as a number.
LEFT_OUT_OF_STAND_IN = ("tril", "triu") if FAKE else ()
SAMPLED = [n for n, o in OPERATORS.items()
           if o["has_samples"] and not n.startswith(LEFT_OUT) and n not in LEFT_OUT_OF_STAND_IN]


def moved(value, device):
    if isinstance(value, fl.Tensor):
        # The layout is kept, and so is what lies around a view.
        base = fl.empty(0, dtype=value.dtype).set_(value.untyped_storage(), 0, (value.untyped_storage().nbytes() // value.itemsize,))
        there = base.to(device)
        return fl.empty(0, dtype=value.dtype, device=device).set_(
            there.untyped_storage(), value.storage_offset(), value.shape, value.stride())
    if isinstance(value, (list, tuple)):
        return type(value)(moved(v, device) for v in value)
    return value


def same(here, there, where):
    if isinstance(here, (tuple, list)):
        assert len(here) == len(there), where
        for a, b in zip(here, there):
            same(a, b, where)
    elif isinstance(here, fl.Tensor):
        assert there.is_cuda and there.dtype == here.dtype and there.shape == here.shape, where
        assert there.stride() == here.stride(), where
        a, b = here.resolve_conj(), there.cpu()
        tolerance = 0 if FAKE else TOLERANCE.get(here.dtype, 0)
        if a.dtype in (fl.bfloat16, fl.float16):
            a, b = a.float(), b.float()
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=tolerance, atol=tolerance, err_msg=where)
    else:
        assert here == there or here != here, where


def has_tensor(value):
    return isinstance(value, fl.Tensor) or (isinstance(value, (list, tuple)) and any(map(has_tensor, value)))


@pytest.mark.parametrize("name", SAMPLED)
def test_as_on_the_cpu(name):
    for dtype in DTYPES:
        for arguments, note, error in _C._samples(name, dtype, SEED):
            if not any(map(has_tensor, arguments)):
                continue
            where = f"{name} [{dtype}, {note}]"
            there = [moved(a, "cuda") for a in arguments]
            if error:
                kind, _, part = error.partition(": ")
                with pytest.raises(Exception) as raised:
                    _C._call(name, *there)
                    fl.cuda.synchronize()
                assert kind in [c.__name__ for c in type(raised.value).__mro__] and part in str(raised.value), where
                continue
            fl.manual_seed(7)
            expected = _C._call(name, *arguments)
            fl.manual_seed(7)
            same(expected, _C._call(name, *there), where)


def differentiable(value):
    if isinstance(value, fl.Tensor) and value.dtype in (fl.float32, fl.complex64) and value.is_leaf:
        return [value]
    return [v for item in value for v in differentiable(item)] if isinstance(value, (list, tuple)) else []


def results_with_gradient(value):
    if isinstance(value, fl.Tensor):
        return [value] if value.grad_fn is not None else []
    return [v for item in value for v in results_with_gradient(item)] if isinstance(value, (list, tuple)) else []


def gradients(name, arguments):
    """By all tensors; nothing where there is no formula."""
    leaves = differentiable(arguments)
    for leaf in leaves:
        leaf.requires_grad_()
    fl.manual_seed(7)
    results = results_with_gradient(_C._call(name, *arguments))
    if not results:
        return []
    total = sum((r * r.conj()).real.sum() if r.is_complex() else (r * r).sum() for r in results)
    try:
        return fl.autograd.grad(total, leaves, allow_unused=True)
    except NotImplementedError:
        return []


@pytest.mark.parametrize("name", [n for n in SAMPLED if not OPERATORS[n]["schema"].endswith("-> ()")])
def test_gradients_as_on_the_cpu(name):
    for dtype in (fl.float32, fl.complex64):
        for arguments, note, error in _C._samples(name, dtype, SEED):
            if error or not any(map(has_tensor, arguments)):
                continue
            there = [moved(a, "cuda") for a in arguments]
            for here, on_device in zip(gradients(name, arguments), gradients(name, there), strict=True):
                if here is not None:
                    same(here, on_device, f"{name} [{dtype}, {note}]")
