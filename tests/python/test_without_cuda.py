"""torch.cuda on a machine without a CUDA device: questions are answered, work says why it can't be done."""
import io
import pickle
import zipfile

import pytest

import flambeau as fl
from flambeau import cuda

pytestmark = pytest.mark.skipif(cuda.is_available(), reason="there is a CUDA device")
# Built without CUDA it is an AssertionError, as in PyTorch.
ERROR = RuntimeError if fl._C._cuda.is_compiled else AssertionError
WHY = "no CUDA device can be used: ." if fl._C._cuda.is_compiled else "not compiled with CUDA"


def test_questions():
    assert not cuda.is_available() and cuda.device_count() == 0 and not cuda.is_initialized()
    assert not cuda.is_bf16_supported() and cuda.get_arch_list() == [] and cuda.default_generators == ()
    assert cuda.memory_allocated() == cuda.max_memory_reserved() == 0 and cuda.memory_stats() == {}
    assert cuda.get_rng_state_all() == [] and not fl.ones(1).is_pinned() and not fl.backends.cudnn.is_available()
    assert fl.accelerator.current_accelerator() is None and fl.accelerator.device_count() == 0
    for harmless in (lambda: cuda.manual_seed(1), lambda: cuda.manual_seed_all(1), cuda.empty_cache, cuda.seed_all,
                     lambda: cuda.set_rng_state(fl.get_rng_state()), cuda.reset_peak_memory_stats):
        assert harmless() is None
    with cuda.stream(None), cuda.device(-1), fl.random.fork_rng():
        pass


@pytest.mark.parametrize("work", [
    cuda.init, cuda.current_device, cuda.synchronize, cuda.current_stream, cuda.Stream, cuda.get_device_name,
    lambda: cuda.set_device(0), lambda: cuda.get_device_properties(0), lambda: fl.ones(1).cuda(),
    lambda: fl.nn.Linear(1, 1).cuda(), lambda: cuda.mem_get_info(), lambda: fl.random.fork_rng([0]).__enter__()])
def test_work(work):
    with pytest.raises(ERROR, match=WHY):
        work()


def test_tensors():
    for work in (lambda: fl.ones(1, device="cuda"), lambda: fl.ones(1).to("cuda:0"),
                 lambda: fl.tensor([1], device="cuda")):
        with pytest.raises(RuntimeError):
            work()
    with pytest.raises(ERROR, match="page-locked"):
        fl.ones(1).pin_memory()
    with pytest.raises(RuntimeError, match="no accelerator"):
        fl.accelerator.synchronize()


def test_mixed_precision_is_off():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        with fl.autocast("cuda"):
            assert not fl.is_autocast_enabled("cuda")
    with pytest.warns(UserWarning, match="no CUDA device"):
        assert not fl.amp.GradScaler().is_enabled()


def test_loaders_do_not_pin():
    with pytest.warns(UserWarning, match="no accelerator is found"):
        batch = next(iter(fl.utils.data.DataLoader([fl.ones(1)], pin_memory=True)))
    assert not batch.is_pinned()


def test_files_of_another_machine():
    file = io.BytesIO()
    fl.save(fl.ones(2), file)
    moved = io.BytesIO()
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(moved, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            # The tag of the storage's device is a string of three letters in the pickle.
            target.writestr(name, data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0"))
    moved.seek(0)
    with pytest.raises(RuntimeError, match=r"torch.cuda.is_available\(\) is False.*map_location"):
        fl.load(moved)
    moved.seek(0)
    assert fl.load(moved, map_location="cpu").tolist() == [1, 1]


def test_devices_have_names():
    assert str(fl.device("cuda")) == "cuda" and fl.device("cuda:1").index == 1
    assert pickle.loads(pickle.dumps(fl.device("cuda:1"))) == fl.device("cuda", 1)
