"""Tensor as a class: subclasses, identity, the garbage collector, __torch_function__, copies and pickles."""
import copy
import gc
import pickle
import weakref

import pytest

import flambeau as fl
from flambeau.overrides import TorchFunctionMode, has_torch_function, is_tensor_like


class Leaf(fl.Tensor):
    def __new__(cls, data, requires_grad=True):
        return fl.Tensor._make_subclass(cls, data, requires_grad)

    __torch_function__ = fl._C._disabled_torch_function_impl


class Tagged(fl.Tensor):
    pass


class Holder:
    pass


def test_a_leaf_class_gives_plain_results():
    p = Leaf(fl.ones(3))
    assert type(p) is Leaf and p.requires_grad and p.is_leaf
    assert type(p * 2) is fl.Tensor and type(p.detach()) is fl.Tensor


def test_a_subclass_gives_its_class():
    t = fl.ones(2, 2).as_subclass(Tagged)
    for result in (t + 1, 1 + t, t.T, t[0], t.sum(), fl.stack([t, t]), -t, t == 1, t.max(0).values):
        assert type(result) is Tagged
    assert isinstance(t.shape, fl.Size) and t.sum().item() == 4


def test_attributes_and_class_outlive_the_python_reference():
    p = Leaf(fl.ones(3))
    (p * 2).sum().backward()
    p.grad.note = "kept"
    for _ in range(3):
        gc.collect()
        assert p.grad.note == "kept" and p.grad is p.grad
    p.grad = fl.ones(3).as_subclass(Tagged)
    for k in range(3):
        gc.collect()
        assert type(p.grad) is Tagged
        p.grad.k = k
        assert p.grad.k == k
    seen = weakref.ref(p.grad)
    gc.collect()
    assert seen() is p.grad
    p.grad = None
    gc.collect()
    assert seen() is None


def test_a_weak_reference_to_a_kept_object_gives_it_back():
    p = Leaf(fl.ones(2))
    p.grad = fl.zeros(2)
    p.grad.note = 1
    seen = weakref.ref(p.grad)
    g = seen()
    p.grad = None
    assert g.note == 1 and g.tolist() == [0, 0]


@pytest.mark.parametrize("hooked", ["attribute", "leaf", "result", "gradient"])
def test_cycles_are_collected(hooked):
    def make():
        n, x = Holder(), fl.ones(3, requires_grad=True)
        if hooked == "result":
            x = x * 2
        if hooked == "attribute":
            n.x, x.n = x, n
        elif hooked == "gradient":
            x.grad = fl.ones(3)
            x.grad.owner, n.x = (x, n), x
        else:
            x.register_hook(lambda g: (n, x) and g)
        return weakref.ref(n)

    seen = make()
    gc.collect()
    assert seen() is None


def test_torch_function_sees_every_call():
    calls = []

    class Logged(fl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    t = fl.ones(2).as_subclass(Logged)
    fl.add(t, 1)
    t.mul(2)
    t.numpy()
    t.grad
    assert calls[:3] == [fl.add, fl.Tensor.mul, fl.Tensor.numpy] and calls[3] == fl.Tensor.grad.__get__
    assert has_torch_function([t]) and not has_torch_function([fl.ones(1), 3]) and is_tensor_like(t)


def test_a_class_that_declines_is_an_error():
    class Refuses:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="no implementation found"):
        fl.add(fl.ones(1), Refuses())


def test_modes_nest():
    calls = []

    class Logs(TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append((self.name, func))
            return func(*args, **(kwargs or {}))

    with Logs("outer"), Logs("inner"):
        fl.ones(1)
    assert calls == [("inner", fl.ones), ("outer", fl.ones)]
    assert fl.ones(1).item() == 1


def test_copies_and_pickles():
    p = Leaf(fl.arange(6.0).view(2, 3).t())
    p.note = [1]
    q = copy.deepcopy(p)
    assert type(q) is Leaf and q.stride() == p.stride() and q.note == [1] and q.note is not p.note
    base = fl.arange(4.0)
    a, b = pickle.loads(pickle.dumps((base, base.view(2, 2))))
    assert b.tolist() == [[0, 1], [2, 3]] and a.tolist() == [0, 1, 2, 3]
    one, two = copy.deepcopy([base, base[1:]])
    one[1] = 9
    assert two[0] == 9, "views of one storage stay views of one storage"
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(p * 2)


def test_tensors_stay_inside_of_their_storage():
    x = fl.arange(4.0)
    assert fl.empty(0).set_(x.untyped_storage(), 1, (2,), (2,)).tolist() == [1, 3]
    for offset, size, stride in ((-1, (2,), (1,)), (3, (2,), (1,)), (0, (2,), (-1,)), (0, (-2,), (1,))):
        with pytest.raises(RuntimeError, match="negative|at least 0|out of bounds"):
            fl.empty(0).set_(x.untyped_storage(), offset, size, stride)
    for source in (x, x.untyped_storage()):
        with pytest.raises(RuntimeError, match="a stride for each size"):
            fl.empty(0).set_(source, 0, (2, 2), (1,))
    with pytest.raises(RuntimeError, match="at least 0"):
        x.resize_(-2)
    for size, stride, offset in (((2,), (1,), 3), ((5,), (1,), 0), ((1,), (1,), -1)):
        with pytest.raises(RuntimeError, match="negative|need a storage"):
            x.as_strided(size, stride, offset)


def test_size_is_a_tuple():
    s = fl.ones(2, 3).shape
    assert s == (2, 3) and s.numel() == 6 and repr(s) == "torch.Size([2, 3])" and hash(s) == hash((2, 3))
    assert type(s[1:]) is fl.Size and type(s + (4,)) is fl.Size and pickle.loads(pickle.dumps(s)) == s
    with pytest.raises(TypeError):
        fl.Size([1.5])


def test_legacy_constructors():
    assert fl.Tensor(2, 3).shape == (2, 3) and fl.Tensor().shape == (0,)
    assert fl.Tensor([1, 2]).tolist() == [1, 2]
    assert fl.LongTensor([1]).dtype is fl.int64 and isinstance(fl.ones(1), fl.FloatTensor)
    assert not isinstance(fl.ones(1), fl.DoubleTensor)


def test_default_dtype_and_device():
    fl.set_default_dtype(fl.float64)
    try:
        assert fl.tensor(1.5).dtype is fl.ones(1).dtype is (fl.tensor(1) / 2).dtype is fl.float64
    finally:
        fl.set_default_dtype(fl.float32)
    assert (fl.tensor([1, 2]) + 0.5).dtype is fl.float32
    with fl.device("meta"):
        assert fl.ones(2).device.type == fl.tensor([1]).device.type == "meta"
    assert fl.ones(1).device.type == "cpu"


def test_types_of_named_results():
    kind = fl.return_types.sort
    assert type(fl.tensor([2, 1]).sort()) is kind and kind is fl.return_types.sort
    assert fl.return_types.linalg_slogdet.__match_args__ == ("sign", "logabsdet")
    for name in ("add", "nothing", "__path__"):
        with pytest.raises(AttributeError):
            getattr(fl.return_types, name)


def test_futures():
    futures = [fl.futures.Future() for _ in range(2)]
    together = fl.futures.collect_all(futures)
    futures[1].set_result(1)
    assert not together.done()
    futures[0].set_exception(ValueError())
    assert together.wait() == futures and fl.futures.collect_all([]).wait() == []
