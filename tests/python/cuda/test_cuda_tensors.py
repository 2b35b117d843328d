"""Tensors on CUDA devices as programs use them: making, moving, indexing, reading, storing and sharing them."""
import copy
import io
import pickle

import numpy as np
import pytest

import flambeau as fl

MIXED = "Expected all tensors to be on the same device, but found at least two devices"
two_devices = pytest.mark.skipif(fl.cuda.device_count() < 2, reason="one CUDA device")


@pytest.fixture
def x():
    return fl.arange(6.0, device="cuda").reshape(2, 3)


def test_making_tensors():
    assert fl.tensor([1, 2], device="cuda").tolist() == [1, 2]
    assert fl.tensor([[1.5]], device=0, dtype=fl.float64).dtype is fl.float64
    assert fl.as_tensor(np.ones(3), device="cuda").device == fl.device("cuda:0")
    assert fl.from_numpy(np.arange(3)).cuda().tolist() == [0, 1, 2]
    there = fl.ones(2, device="cuda")
    assert fl.tensor(there).is_cuda and there.new_tensor([1]).is_cuda and there.new([1.0]).is_cuda
    assert there.new_zeros(3).is_cuda and fl.zeros_like(there).is_cuda


def test_types():
    there = fl.ones(2, device="cuda")
    assert there.type() == "torch.cuda.FloatTensor"
    assert fl.ones(2).type("torch.cuda.HalfTensor").type() == "torch.cuda.HalfTensor"
    assert there.type("torch.DoubleTensor").type() == "torch.DoubleTensor"
    assert there.type(fl.cuda.LongTensor).type() == "torch.cuda.LongTensor"
    assert there.type(fl.float16).type() == "torch.cuda.HalfTensor"
    assert isinstance(there, fl.cuda.FloatTensor) and not isinstance(there, fl.FloatTensor)
    assert not isinstance(fl.ones(2), fl.cuda.FloatTensor)
    assert fl.cuda.FloatTensor(2, 3).shape == (2, 3) and fl.cuda.LongTensor([4, 5]).tolist() == [4, 5]


def test_devices():
    assert str(fl.device("cuda")) == "cuda" and repr(fl.device("cuda")) == "device(type='cuda')"
    assert fl.device("cuda").index is None and fl.device("cuda") != fl.device("cuda:0")
    assert fl.device(0) == fl.device("cuda", 0) == fl.device("cuda:0")
    assert pickle.loads(pickle.dumps(fl.device("cuda"))) == fl.device("cuda")
    assert fl.ones(1, device=fl.device("cuda")).device == fl.device("cuda:0")
    with pytest.raises(RuntimeError, match="must not include an index"):
        fl.device("cuda:0", 1)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        fl.ones(2, device="cuda:99")


@two_devices
def test_cuda_without_a_number_is_the_current_device():
    where = fl.device("cuda")
    with fl.cuda.device(1):
        assert fl.ones(1, device=where).device == fl.ones(1, device="cuda").device == fl.device("cuda:1")
        assert fl.ones(1).cuda().device == fl.device("cuda:1")
    assert fl.ones(1, device=where).device == fl.device("cuda:0")


def test_device_contexts_and_the_default_device():
    with fl.device("cuda"):
        assert fl.ones(2).is_cuda and fl.nn.Linear(2, 2).weight.is_cuda and fl.tensor(1).is_cuda
    fl.set_default_device("cuda")
    try:
        assert fl.get_default_device() == fl.device("cuda:0") and fl.randn(2).is_cuda
    finally:
        fl.set_default_device(None)
    assert not fl.ones(2).is_cuda


def test_moving():
    here = fl.ones(2)
    there = here.to("cuda")
    assert there.to("cuda") is there and there.cuda() is there and there.cpu() is not there
    assert here.to(0).device == here.cuda(0).device == here.cuda(device="cuda:0", non_blocking=True).device
    assert here.to("cuda", fl.float16, non_blocking=True).dtype is fl.float16
    assert here.to(there).is_cuda and there.get_device() == 0 and here.get_device() == -1


@two_devices
def test_moving_between_devices(x):
    y = x.to("cuda:1")
    assert y.device == fl.device("cuda:1") and y.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match=f"{MIXED}, cuda:0 and cuda:1"):
        x + y
    assert x.clone().copy_(y).tolist() == x.tolist()


def test_reading_elements(x):
    assert x[0, 1].item() == 1.0 and float(x[0, 2]) == 2.0 and bool(x[0, 1] > 0)
    assert f"{x[1, 0]:.2f}" == "3.00" and [1, 2, 3][fl.tensor(1, device="cuda")] == 2
    assert repr(x) == "tensor([[0., 1., 2.],\n        [3., 4., 5.]], device='cuda:0')"
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\\(\\)"):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert cuda:0"):
        np.asarray(x)
    assert x.requires_grad_().numpy(force=True).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_indices_may_be_on_the_cpu(x):
    here = x.cpu()
    rows, mask = fl.tensor([1, 0]), fl.tensor([True, False, True])
    for index in (rows, rows.cuda(), [1, 0], np.array([1, 0]), (slice(None), mask), (slice(None), mask.cuda()),
                  (fl.tensor(1), fl.tensor([2])), here > 2):
        on_cpu = tuple(i.cpu() if isinstance(i, fl.Tensor) else i for i in index) if isinstance(index, tuple) else (
            index.cpu() if isinstance(index, fl.Tensor) else index)
        assert x[index].is_cuda and x[index].tolist() == here[on_cpu].tolist()
        a, b = x.clone(), here.clone()
        a[index], b[on_cpu] = 7, 7
        assert a.tolist() == b.tolist()
        a[index], b[on_cpu] = fl.tensor(9.0), fl.tensor(9.0)
        assert a.tolist() == b.tolist()
        assert x.index_put((index,) if isinstance(index, fl.Tensor) else (rows,), fl.tensor(2.0)).is_cuda
    for wrong in (rows.cuda(), mask[:2].cuda()):
        with pytest.raises(RuntimeError, match="either on cpu or on the same device as the indexed tensor"):
            here[wrong]
    y = x.clone().requires_grad_()
    y[rows[:1]].sum().backward()
    assert y.grad.tolist() == [[0, 0, 0], [1, 1, 1]]
    with pytest.raises(RuntimeError, match=MIXED):
        x.clone().index_put_((rows,), fl.ones(2, 3))


def test_tensors_of_the_cpu_are_numbers_or_errors(x):
    two = fl.tensor(2.0)
    assert (x + two).tolist() == (x + 2).tolist() and (two + x).is_cuda
    assert fl.where(x > 2, two, x).is_cuda and x.masked_fill(x > 2, two).is_cuda
    here = fl.ones(2, 3)
    for wrong in (lambda: x + here, lambda: here + x, lambda: x.clone().add_(here), lambda: here.clone().add_(x),
                  lambda: x @ here.mT, lambda: fl.cat([x, here]), lambda: fl.nn.Linear(3, 2)(x),
                  lambda: fl.nn.functional.cross_entropy(x, fl.tensor([0, 1])), lambda: fl.where(x > 2, here, x),
                  lambda: fl.nn.Embedding(3, 4)(fl.tensor([0], device="cuda"))):
        with pytest.raises(RuntimeError, match=MIXED):
            wrong()
    with pytest.raises(RuntimeError, match="tensor for its result is on cpu"):
        fl.add(x, x, out=fl.empty(2, 3))
    assert x.clone().copy_(here).tolist() == here.tolist() and here.copy_(x).tolist() == x.tolist()


def test_copies_and_pickles(x):
    x.requires_grad_()
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
        assert made.device == x.device and made.tolist() == x.tolist() and made.requires_grad
    model = fl.nn.Linear(2, 2).cuda()
    twin = copy.deepcopy(model)
    assert twin.weight.is_cuda and twin.weight.tolist() == model.weight.tolist()
    assert twin.weight.data_ptr() != model.weight.data_ptr()


def saved(value, **options):
    file = io.BytesIO()
    fl.save(value, file)
    file.seek(0)
    return fl.load(file, **options)


def test_files(x):
    places = [(None, "cuda:0"), ("cpu", "cpu"), (fl.device("cpu"), "cpu"), ({"cuda:0": "cpu"}, "cpu"),
              (lambda storage, location: storage.cuda(), "cuda:0"), (lambda storage, location: storage, "cpu"),
              ("cuda", "cuda:0"), ({"cuda:0": "cuda:0"}, "cuda:0")]
    for where, expected in places:
        a, b = saved((x, x[0]), map_location=where)
        assert str(a.device) == str(b.device) == expected
        assert a.tolist() == x.tolist() and a.data_ptr() == b.data_ptr()
    assert saved(fl.ones(2)).device.type == "cpu" and saved(fl.ones(2), map_location="cuda").is_cuda
    with pytest.raises(RuntimeError, match=r"device_count\(\) is \d"):
        saved(x, map_location="cuda:99")
    optimizer = fl.optim.Adam([x.requires_grad_()])
    x.sum().backward()
    optimizer.step()
    state = saved(optimizer.state_dict())["state"][0]
    assert state["exp_avg"].is_cuda


def test_storages(x):
    bytes_of = x.untyped_storage()
    assert bytes_of.is_cuda and bytes_of.device == x.device and bytes_of.get_device() == 0
    assert bytes_of.cuda() is bytes_of and bytes_of.cpu().device.type == "cpu" and len(bytes_of) == 24
    assert bytes_of.cpu().cuda().tolist() == bytes_of.tolist() and bytes_of[6] == 128 and bytes_of[4:8][2] == 128
    with pytest.raises(BufferError, match="cuda:0"):
        memoryview(bytes_of)
    copied = fl.UntypedStorage(24, device="cuda")
    copied.copy_(bytes_of)
    assert copied.tolist() == bytes_of.tolist()
    copied.fill_(0)
    copied[3] = 5
    assert copied.tolist() == [0, 0, 0, 5] + [0] * 20
    copied.resize_(8)
    assert len(copied) == 8 and copied.is_cuda
    assert fl.UntypedStorage([1, 2], device="cuda").tolist() == [1, 2]
    typed = x.storage()
    assert typed.is_cuda and typed[4] == 4.0 and typed.type() == "torch.cuda.FloatStorage"
    assert typed.cpu().type() == "torch.FloatStorage" and typed.cpu().cuda().tolist() == typed.tolist()
    assert fl.tensor([]).cuda().set_(typed).tolist() == [0, 1, 2, 3, 4, 5]
    assert copy.deepcopy(typed).is_cuda and pickle.loads(pickle.dumps(bytes_of)).is_cuda
    assert fl.cuda.FloatStorage(3).is_cuda and fl.cuda.FloatStorage([1.0, 2.0]).tolist() == [1, 2]


def test_other_libraries(x):
    assert x.__dlpack_device__() == (2, 0)
    shared = fl.from_dlpack(x)
    assert shared.data_ptr() == x.data_ptr() and shared.tolist() == x.tolist()
    assert fl.utils.dlpack.from_dlpack(fl.utils.dlpack.to_dlpack(x)).data_ptr() == x.data_ptr()
    with fl.cuda.stream(fl.cuda.Stream()):
        assert fl.from_dlpack(x * 2).tolist() == (x * 2).tolist()
    here = fl.from_dlpack(x.__dlpack__(dl_device=(1, 0), max_version=(1, 0)))
    assert not here.is_cuda and here.tolist() == x.tolist()
    with pytest.raises(ValueError, match="without a copy"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(TypeError, match="stream must be int"):
        x.__dlpack__(stream="default")
    facts = x[:, 1:].__cuda_array_interface__
    assert facts == {"typestr": "<f4", "shape": (2, 2), "strides": (12, 4), "data": (x.data_ptr() + 4, False),
                     "version": 2}
    with pytest.raises(AttributeError, match="non-CUDA"):
        fl.ones(1).__cuda_array_interface__
    assert not hasattr(fl.ones(1), "__cuda_array_interface__")


def test_pinned_memory(x):
    here = fl.arange(6.0).reshape(2, 3).T
    pinned = here.pin_memory()
    assert pinned.is_pinned() and not here.is_pinned() and pinned.stride() == here.stride()
    assert pinned.tolist() == here.tolist() and pinned.pin_memory() is pinned
    assert pinned.cuda(non_blocking=True).tolist() == here.tolist()
    for made in (fl.empty(3, pin_memory=True), fl.zeros(3, pin_memory=True), fl.tensor([1.0], pin_memory=True),
                 fl.rand(2, pin_memory=True), fl.ones(2).new_tensor([1.0], pin_memory=True)):
        assert made.is_pinned()
    back = fl.empty(2, 3, pin_memory=True)
    back.copy_(x, non_blocking=True)
    fl.cuda.synchronize()
    assert back.tolist() == x.tolist()
    assert fl.ones(2).untyped_storage().pin_memory().is_pinned() and fl.ones(2).storage().pin_memory().is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.pin_memory()
    packed = fl.nn.utils.rnn.pack_sequence([fl.ones(2), fl.ones(1)])
    assert packed.pin_memory().is_pinned() and packed.cuda().data.is_cuda


def test_streams_may_outlive_a_tensor(x):
    x.record_stream(fl.cuda.Stream())
    fl.ones(2).record_stream(fl.cuda.current_stream())
    assert x.share_memory_() is x and x.is_shared()


def test_generators():
    here = fl.Generator().manual_seed(3)
    there = fl.Generator(device="cuda").manual_seed(3)
    assert there.device == fl.device("cuda:0")
    assert fl.rand(4, generator=here).tolist() == fl.rand(4, device="cuda", generator=there).tolist()
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        fl.rand(2, device="cuda", generator=here)
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        fl.ones(2).normal_(generator=there)


def test_functions_of_the_host_are_for_the_host(x):
    with pytest.raises(TypeError, match="only implemented on CPU"):
        x.apply_(lambda v: v)
