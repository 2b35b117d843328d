"""Bad input raises the exception that PyTorch raises; no crash, no hang, nothing changed."""
import numpy as np
import pytest

import flambeau as fl
import flambeau.nn.functional as F


def holding_itself():
    a = []
    a.append(a)
    return a


class SaysFive(list):
    def __len__(self):
        return 5


def without_memory(size=0):
    x = fl.ones(5)
    x.untyped_storage().resize_(size)
    return x


HUGE = 2**62
CASES = {
    "bytes beyond int64": (RuntimeError, [
        lambda: fl.zeros(HUGE), lambda: fl.full((2**61,), 1), lambda: fl.arange(0, HUGE),
        lambda: fl.ones(1).repeat(HUGE), lambda: fl.linspace(0, 1, HUGE),
        lambda: fl.empty_strided((2,), (HUGE,)), lambda: fl.empty_strided((5,), (HUGE,)),
    ]),
    "strides and sizes below 0": (RuntimeError, [
        lambda: fl.empty_strided((2,), (-1,)), lambda: fl.zeros(5).as_strided((-1,), (1,)),
        lambda: fl.zeros(5).as_strided((3,), (-1,)),
    ]),
    "outside of the memory": (RuntimeError, [
        lambda: fl.zeros(5).as_strided_scatter(fl.ones(3), (3,), (3,)),
        lambda: fl.zeros(5).as_strided_scatter(fl.ones(1), (1,), (1,), -1),
        lambda: fl.zeros(5).as_strided((3,), (3,)),
    ]),
    "memory given away": (RuntimeError, [
        lambda: without_memory() + 1, lambda: without_memory().tolist(), lambda: without_memory().add_(1),
        lambda: without_memory() @ fl.ones(5), lambda: fl.cat([without_memory(), fl.ones(1)]),
        lambda: fl.add(fl.ones(5), 1, out=without_memory()),
    ]),
    "numbers beyond a dtype": (RuntimeError, [
        lambda: fl.full((2,), 300, dtype=fl.uint8), lambda: fl.ones(2, dtype=fl.int8).fill_(300),
        lambda: fl.full((2,), float("nan"), dtype=fl.int32), lambda: fl.full((2,), 1e300),
        lambda: fl.ones(2).fill_(1j), lambda: fl.tensor(300, dtype=fl.uint8),
        lambda: fl.tensor(2**40, dtype=fl.int32), lambda: fl.tensor(float("inf"), dtype=fl.int64),
        lambda: fl.ones(2, dtype=fl.int8).masked_fill_(fl.tensor([True, False]), 300),
        lambda: fl.ones(2, dtype=fl.int8).scatter_(0, fl.tensor([0]), 300),
        lambda: F.pad(fl.ones(2, dtype=fl.int8), (1, 1), value=300),
        lambda: fl.ones(2, dtype=fl.int8).__setitem__(0, 1000), lambda: fl.ones(2).__setitem__(0, 1j),
        lambda: fl.compile(lambda x: x.fill_(300))(fl.ones(2, dtype=fl.int8)),
    ]),
    "no integer of 64 bits": (ValueError, [
        lambda: fl.tensor(2**64), lambda: fl.tensor([-2**63 - 1]), lambda: fl.ones(3)[2**70],
        lambda: fl.ones(3).sum(2**64), lambda: fl.ones(3).__setitem__(0, 2**64),
    ]),
    "as a number": (OverflowError, [lambda: fl.ones(2) + 2**64, lambda: fl.ones(2).fill_(2**64)]),
    "data": (ValueError, [
        lambda: fl.tensor(holding_itself()), lambda: fl.tensor([[1, 2], [3]]),
        lambda: fl.from_numpy(np.zeros(3, ">f4")), lambda: fl.tensor(np.zeros(3, ">f4")),
        lambda: float(fl.ones(3)), lambda: int(fl.ones(3)),
    ]),
    "no data": (RuntimeError, [
        lambda: fl.tensor(None), lambda: fl.tensor([{}]), lambda: fl.tensor(object()),
        lambda: fl.from_dlpack(3), lambda: float(fl.tensor(1j)),
    ]),
    "complex data": (TypeError, [
        lambda: fl.tensor(1j, dtype=fl.float32), lambda: fl.view_as_real(fl.ones(2)),
        lambda: fl.sort(fl.ones(3, dtype=fl.complex64)),
    ]),
    "no index": (IndexError, [
        lambda: fl.ones(3)[1.5], lambda: fl.ones(3)[{}],
        lambda: F.embedding_bag(fl.tensor([0, 1]), fl.ones(3, 2), fl.tensor([0, -4])),
        lambda: fl.ones(0).kthvalue(1),
    ]),
    "arguments": (RuntimeError, [
        lambda: fl.bincount(fl.tensor([1]), minlength=-1), lambda: fl.ones(3).tensor_split(HUGE),
        lambda: F.conv_transpose1d(fl.ones(1, 1, 3), fl.ones(1, 1, 2), output_padding=1),
        lambda: fl.cdist(fl.ones(2, 3), fl.ones(2, 3), p=-1),
        lambda: fl.group_norm(fl.ones(1, 4, 2, 2), -2**63),
        lambda: fl.ones(0).norm(float("inf")), lambda: fl.linalg.vector_norm(fl.ones(2, 0), -1.0, 1),
        lambda: fl.segment_reduce(fl.ones(3), "sum", offsets=fl.tensor([0, 9])),
        lambda: fl.segment_reduce(fl.ones(3), "sum", offsets=fl.tensor([-1, 3])),
    ]),
    "half precision": (NotImplementedError, [lambda: fl.fft.fft(fl.ones(3, dtype=fl.bfloat16))]),
}


@pytest.mark.parametrize("kind", CASES)
def test_raises(kind):
    error, calls = CASES[kind]
    for call in calls:
        with pytest.raises(error):
            call()


def test_a_list_that_holds_itself_is_no_index():
    with pytest.raises((TypeError, ValueError)):
        fl.ones(3)[holding_itself()]


def test_a_list_is_as_long_as_its_items():
    assert fl.tensor(SaysFive([1, 2])).tolist() == [1, 2]


def test_memory_of_less_than_a_tensor():
    x = without_memory(4)
    assert x.untyped_storage().nbytes() == 4
    assert x[0].item() == 1 and (x + 1).shape == (5,)
    x.untyped_storage().resize_(20)
    assert x.shape == (5,) and x[0].item() == 1


def test_numbers_at_the_limits_of_a_dtype():
    assert fl.full((1,), 255, dtype=fl.uint8).tolist() == [255]
    assert fl.full((1,), -1, dtype=fl.uint8).tolist() == [255]
    assert fl.full((1,), -128, dtype=fl.int8).tolist() == [-128]
    assert fl.full((1,), -2**63, dtype=fl.int64).tolist() == [-2**63]
    assert fl.full((1,), 2.9, dtype=fl.int8).tolist() == [2]
    assert fl.full((1,), 65504, dtype=fl.float16).tolist() == [65504]
    assert fl.full((1,), float("inf"), dtype=fl.float16).tolist() == [float("inf")]
    assert fl.full((1,), 2**40, dtype=fl.bool).tolist() == [True]
    assert fl.tensor(3 + 0j, dtype=fl.complex64).item() == 3


def test_diagonals_far_outside():
    x = fl.ones(2, 3)
    assert x.tril(2**63 - 1).equal(x) and x.triu(-2**63).equal(x)
    assert x.triu(2**63 - 1).equal(fl.zeros(2, 3)) and x.tril(-2**63).equal(fl.zeros(2, 3))


def test_slices_are_clamped_as_python_does():
    assert fl.arange(3)[-2**70:2**70].tolist() == [0, 1, 2]
    assert fl.arange(3)[2**70:].tolist() == []


def test_median_of_nothing_is_nan():
    assert fl.ones(0).median().isnan()


def test_failed_writes_change_nothing():
    x = fl.tensor([1, 2], dtype=fl.int8)
    for write in (lambda: x.fill_(300), lambda: x.__setitem__(slice(None), 300),
                  lambda: x.masked_fill_(fl.tensor([True, True]), 300)):
        with pytest.raises(RuntimeError, match="int8 without overflow: 300"):
            write()
    assert x.tolist() == [1, 2]
