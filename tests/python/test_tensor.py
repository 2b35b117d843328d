"""Construction, properties, conversion and indexing."""
import subprocess
import sys

import numpy as np
import pytest

import flambeau as fl


@pytest.mark.parametrize("data, dtype", [
    (3, fl.int64), (2.5, fl.float32), (True, fl.bool), (1j, fl.complex64), ([1, 2.5], fl.float32),
    ([[1, 2], [3, 4]], fl.int64),
    ([], fl.float32), ([[], []], fl.float32), ([True, 2], fl.int64), (np.float64(1), fl.float32),
    (np.arange(3, dtype=np.int16), fl.int16),
])
def test_tensor_infers_its_dtype(data, dtype):
    t = fl.tensor(data)
    assert t.dtype is dtype
    assert t.shape == np.shape(data)
    np.testing.assert_array_equal(t.numpy(), np.asarray(data))


def test_tensor_copies_and_converts():
    a = np.ones(3, np.float32)
    t = fl.tensor(a, dtype=fl.float64)
    a[0] = 5
    assert t.tolist() == [1.0, 1.0, 1.0] and t.dtype is fl.float64
    assert fl.tensor([1.7, -1.7], dtype=fl.int32).tolist() == [1, -1]
    assert fl.tensor(a[::-1]).tolist() == [1.0, 1.0, 5.0]
    assert fl.tensor(t, dtype=float).dtype is fl.float64


@pytest.mark.parametrize("data, error", [
    ([[1, 2], [3]], ValueError), ([1, [2]], TypeError), ("text", TypeError),
    ([None], RuntimeError), (None, RuntimeError), ({}, RuntimeError), ([2**70], ValueError),
])
def test_tensor_refuses(data, error):
    with pytest.raises(error):
        fl.tensor(data)


def test_numpy_shares_memory_both_ways():
    a = np.arange(6.0).reshape(2, 3)
    t = fl.from_numpy(a)
    t[0, 0] = 9
    a[1, 2] = -1
    assert a[0, 0] == 9 and t[1, 2].item() == -1
    b = t.numpy()
    b[0, 1] = 7
    assert t[0, 1].item() == 7 and t.data_ptr() == a.ctypes.data == b.ctypes.data
    assert fl.from_numpy(a.T).stride() == (1, 3)


def test_arrays_keep_tensors_alive():
    b = fl.arange(100000).numpy()
    fl.arange(100000).add_(1)
    assert b.sum() == 4999950000


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32",
                                   "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0, 3), (4,), (2, 3)])
def test_numpy_exchange(dtype, shape):
    a = (np.random.default_rng(0).normal(size=shape) * 3).astype(dtype)
    a = np.asarray(a)
    t = fl.from_numpy(a)
    assert t.dtype is getattr(fl, dtype) and t.shape == a.shape
    np.testing.assert_array_equal(t.numpy(), a)
    np.testing.assert_array_equal(np.asarray(t), a)
    np.testing.assert_array_equal(np.from_dlpack(t), a)
    np.testing.assert_array_equal(fl.from_dlpack(a).numpy(), a)
    np.testing.assert_array_equal(np.array(t.tolist(), dtype).reshape(shape), a)


def test_from_numpy_refuses():
    for bad, error in [(np.zeros(3, np.uint16), TypeError), (np.zeros(3, ">f4"), ValueError),
                       (np.zeros(3)[::-1], ValueError), ([1, 2], TypeError),
                       (np.array(["a"]), TypeError)]:
        with pytest.raises(error):
            fl.from_numpy(bad)


def test_numpy_refuses():
    with pytest.raises(RuntimeError, match="requires grad"):
        fl.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="bfloat16"):
        fl.ones(2, dtype=fl.bfloat16).numpy()


def test_dlpack_capsule_is_used_once():
    capsule = fl.arange(3).__dlpack__()
    assert fl.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="nobody has used"):
        fl.from_dlpack(capsule)
    fl.arange(3).__dlpack__()  # never taken: freed with its capsule
    assert fl.arange(3).__dlpack_device__() == (1, 0)


def test_properties():
    t = fl.zeros(2, 3, 4)
    assert (t.shape, t.stride(), t.ndim, t.numel(), len(t)) == ((2, 3, 4), (12, 4, 1), 3, 24, 2)
    assert t.size(-1) == 4 and t.size() == t.shape and t.element_size() == 4
    assert t.is_contiguous() and not t.transpose(0, 1).is_contiguous()
    assert t.device == fl.device("cpu") and str(t.device) == "cpu" and t.device.type == "cpu"
    assert fl.zeros(2, device="meta").device.type == "meta"
    assert t.mT.shape == (2, 4, 3) and t.T.shape == (4, 3, 2)


def test_numbers():
    assert fl.tensor(2.5).item() == 2.5 and isinstance(fl.tensor(3).item(), int)
    assert float(fl.tensor([2])) == 2.0 and int(fl.tensor(2.9)) == 2 and bool(fl.tensor(0)) is False
    assert [10, 20, 30][fl.tensor(1)] == 20
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(fl.ones(2))
    with pytest.raises(RuntimeError):
        fl.ones(2).item()


def test_printing():
    assert repr(fl.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert repr(fl.float32) == "torch.float32"
    assert repr(fl.device("cpu")) == "device(type='cpu')"


def test_a_tensor_is_one_object():
    t = fl.ones(3)
    assert t.add_(1) is t
    out = fl.empty(3)
    assert fl.add(t, t, out=out) is out
    assert {t: 1}[t] == 1
    t += 1
    assert t.tolist() == [3, 3, 3]


def test_python_operators():
    a, b = np.array([1.0, -2.0, 3.5]), np.array([2.0, 3.0, -1.0])
    x, y = fl.from_numpy(a), fl.from_numpy(b)
    for got, expected in [(x + y, a + b), (x - 1, a - 1), (1 - x, 1 - a), (2 * x, 2 * a), (x / y, a / b),
                          (1 / x, 1 / a), (x**2, a**2), (2**x, 2**a),
                          (x // y, a // b), (x % y, a % b), (-x, -a), (abs(x), abs(a)), (x @ y, a @ b),
                          (x < y, a < b), (x == x, a == a), (x != y, a != b),
                          (3 > x, 3 > a)]:
        np.testing.assert_allclose(got.numpy(), expected)
    assert (~fl.tensor([True, False])).tolist() == [False, True]
    assert (fl.tensor([6]) & 3).tolist() == [2] and (fl.tensor([1]) << 3).tolist() == [8]
    with pytest.raises(TypeError):
        x + "text"
    assert (x == "text") is False


INDICES = [
    0, -1, slice(None), slice(1, None), slice(None, -1), slice(0, 3, 2), None, Ellipsis, (0, 1),
    (slice(None), 1), (Ellipsis, 0), (0, Ellipsis, 1), (None, 0, None),
    (slice(1, 2), None, Ellipsis, slice(0, 2)), [0, 2], (slice(None), [1, 0]), ([0, 1], [1, 2]),
    ([0, 1], slice(None), [1, 2]),
    np.array([[0, 1], [2, 0]]), (slice(5, 2),), np.array([True, False, True]),
    (Ellipsis, np.array([True, False, True, False])), (np.int64(1), 2), True, (),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing(index):
    a = np.arange(48.0).reshape(3, 4, 4)
    t = fl.from_numpy(a.copy())
    np.testing.assert_array_equal(t[index].numpy(), a[index])
    if isinstance(index, np.ndarray):
        np.testing.assert_array_equal(t[fl.from_numpy(index)].numpy(), a[index])
    t[index] = -1
    changed = a.copy()
    changed[index] = -1
    np.testing.assert_array_equal(t.numpy(), changed)


def test_integers_are_taken_before_lists():
    a = np.arange(48.0).reshape(3, 4, 4)
    np.testing.assert_array_equal(fl.from_numpy(a)[0, :, [3, 1]].numpy(), a[0][:, [3, 1]])


class Place:
    def __index__(self):
        return 1


@pytest.mark.parametrize("place", [Place(), fl.tensor(1), np.array(1), np.int64(1)],
                         ids=lambda p: type(p).__name__)
def test_what_stands_for_an_integer(place):
    t = fl.arange(6).reshape(3, 2)
    assert t[place].tolist() == [2, 3] and t[:, place].tolist() == [1, 3, 5] and t[place, 0].item() == 2
    t[place] = fl.tensor([7, 8])
    assert t.tolist() == [[0, 1], [7, 8], [4, 5]]
    if not isinstance(place, (np.ndarray, np.int64)):
        assert t[place:].tolist() == [[7, 8], [4, 5]]


def test_integers_of_every_kind_give_views():
    t = fl.zeros(3, 2)
    t[fl.tensor(1)].fill_(5)
    t[Place(), 0:1].fill_(6)
    assert t.tolist() == [[0, 0], [6, 5], [0, 0]]


def test_masks_without_dimensions():
    t, yes, no = fl.arange(6).reshape(3, 2), fl.tensor(True), fl.tensor(0, dtype=fl.uint8)
    assert t[yes].tolist() == [t.tolist()] and t[no].shape == (0, 3, 2) and t[:, yes].shape == (3, 1, 2)
    assert fl.tensor(3)[yes].tolist() == [3] and fl.tensor(3)[None, no].shape == (1, 0)
    t[0, yes] = 9
    t[no] = 7
    assert t.tolist() == [[9, 9], [2, 3], [4, 5]]


def test_masks_of_several_dimensions():
    a = np.arange(24.0).reshape(2, 3, 4)
    for mask in (a > 7, a[:, :, 0] > 5):
        t = fl.from_numpy(a.copy())
        np.testing.assert_array_equal(t[fl.from_numpy(mask)].numpy(), a[mask])
        t[fl.from_numpy(mask)] = fl.tensor(0.0)
        changed = a.copy()
        changed[mask] = 0
        np.testing.assert_array_equal(t.numpy(), changed)


@pytest.mark.parametrize("index, error", [
    (5, IndexError), ((0, 0, 0, 0), IndexError), ("a", TypeError), (slice(None, None, -1), ValueError),
    (1.5, IndexError), ([7], IndexError),
    ((Ellipsis, Ellipsis), IndexError),
])
def test_bad_indices(index, error):
    with pytest.raises(error):
        fl.zeros(3, 4, 4)[index]


def test_views_by_index_share_memory():
    t = fl.zeros(3, 4)
    row = t[1]
    row.add_(2)
    t[:, 0] = fl.tensor([7, 8, 9])
    assert t.tolist() == [[7, 0, 0, 0], [8, 2, 2, 2], [9, 0, 0, 0]]
    assert [r.tolist() for r in t] == t.tolist()


def test_generator():
    g = fl.Generator().manual_seed(3)
    first = fl.rand(4, generator=g)
    state = g.get_state()
    second = fl.rand(4, generator=g)
    g.set_state(state)
    assert fl.rand(4, generator=g).tolist() == second.tolist() != first.tolist()
    fl.manual_seed(1)
    a = fl.randn(3)
    fl.manual_seed(1)
    assert fl.randn(3).tolist() == a.tolist()


def test_import_is_light():
    code = "import sys; before = set(sys.modules); import flambeau; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert not {"numpy", "inspect", "dataclasses", "importlib.metadata", "typing", "re"} & set(loaded)
    assert not [m for m in loaded if m.startswith(("flambeau.nn", "flambeau.optim", "flambeau.utils"))]
