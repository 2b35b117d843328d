"""assert_close and make_tensor."""
import numpy as np
import pytest

import flambeau as fl
from flambeau.testing import assert_close, make_tensor


@pytest.mark.parametrize("actual, expected", [
    (fl.tensor([1.0, 2.0]), fl.tensor([1.0, 2.000001])), (1.0, 1.0 + 1e-8), ([1, (2.0,)], [1, (2.0,)]),
    ({"a": 1}, {"a": 1}), (np.ones(2), fl.ones(2, dtype=fl.float64)), (None, None),
    (fl.ones(2, 0), fl.ones(2, 0)), (fl.tensor([float("inf")]), fl.tensor([float("inf")])),
    (fl.tensor([1.0]).bfloat16(), fl.tensor([1.01]).bfloat16()), (fl.tensor([1 + 1j]), fl.tensor([1 + 1j])),
])
def test_close(actual, expected):
    assert_close(actual, expected)


@pytest.mark.parametrize("actual, expected, message", [
    (fl.tensor([1.0, 2.0]), fl.tensor([1.0, 2.5]),
     r"(?s)Mismatched elements: 1 / 2 \(50.0%\).*difference: 0.5 at index \(1,\)"),
    (fl.tensor([1, 2]), fl.tensor([1, 3]), "not equal"), (1.0, 2.0, "Expected 2.0 but got 1.0"),
    (fl.ones(2), fl.ones(3), "shapes differ"), (fl.ones(2), fl.ones(2, dtype=fl.float64), "dtypes differ"),
    ([1], [1, 2], "length"), ({"a": 1}, {"b": 1}, "keys"),
    ({"a": [1, 2]}, {"a": [1, 3]}, r"item \['a'\]\[1\]"),
    (fl.tensor([float("nan")]), fl.tensor([float("nan")]), "not close"), (None, 1, "None"),
    (fl.tensor([float("inf")]), fl.tensor([1.0]), "inf"), (1, 1.0, "types"),
])
def test_not_close(actual, expected, message):
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected)


def test_options():
    assert_close(fl.tensor([1.0]), fl.tensor([1.1]), rtol=0, atol=0.2)
    assert_close(fl.tensor([float("nan")]), fl.tensor([float("nan")]), equal_nan=True)
    assert_close(fl.ones(2), fl.ones(2, dtype=fl.float64), check_dtype=False)
    with pytest.raises(AssertionError, match="stride"):
        assert_close(fl.ones(2, 3), fl.ones(3, 2).T, check_stride=True)
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match="(?s)^before Scalars"):
        assert_close(1, 2, msg=lambda text: "before " + text)
    with pytest.raises(ValueError, match="rtol"):
        assert_close(1, 2, rtol=1)
    with pytest.raises(TypeError, match="No comparison"):
        assert_close(object(), object())


@pytest.mark.parametrize("dtype", [fl.float32, fl.float64, fl.float16, fl.bfloat16, fl.int8, fl.uint8,
                                   fl.int64, fl.bool, fl.complex64])
def test_make_tensor(dtype):
    t = make_tensor(4, 5, dtype=dtype, noncontiguous=True)
    assert t.shape == (4, 5) and t.dtype is dtype and not t.is_contiguous()
    assert make_tensor((2, 0), dtype=dtype).shape == (2, 0) and make_tensor((), dtype=dtype).shape == ()
    if dtype not in (fl.bool, fl.complex64):
        t = make_tensor(1000, dtype=dtype, low=2, high=5).double()
        assert 2 <= t.min().item() and t.max().item() < 5
        assert (make_tensor(1000, dtype=dtype, low=0, high=2, exclude_zero=True) != 0).all()


def test_make_tensor_refuses():
    with pytest.raises(ValueError, match="requires_grad"):
        make_tensor(2, dtype=fl.int64, requires_grad=True)
    with pytest.raises(ValueError, match="less than or equal"):
        make_tensor(2, dtype=fl.float32, low=3, high=1)
    assert make_tensor(2, dtype=fl.float32, requires_grad=True).requires_grad
