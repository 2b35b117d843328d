"""torch.cuda and torch.accelerator: devices, streams, events, memory, random numbers, switches."""
import gc
import uuid

import pytest

import flambeau as fl
from flambeau import cuda

two_devices = pytest.mark.skipif(cuda.device_count() < 2, reason="one CUDA device")


def test_devices():
    assert cuda.is_available() and cuda.is_initialized() and cuda.device_count() >= 1
    assert cuda.current_device() == 0 and cuda.init() is None
    facts = cuda.get_device_properties()
    assert cuda.get_device_name(0) == cuda.get_device_name("cuda:0") == facts.name
    assert cuda.get_device_capability() == (facts.major, facts.minor)
    assert isinstance(facts.uuid, uuid.UUID) and facts.total_memory > 0 and "multi_processor_count" in repr(facts)
    assert facts.max_threads_per_block >= 0
    with pytest.raises(AttributeError, match="no property"):
        facts.colour
    assert cuda.get_arch_list()[0].startswith("sm_") and not cuda.can_device_access_peer(0, 0)
    for wrong in (lambda: cuda.get_device_name(99), lambda: cuda.can_device_access_peer(0, 99)):
        with pytest.raises(AssertionError, match="Invalid device id"):
            wrong()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        cuda.set_device(99)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.synchronize("cpu")
    assert fl.version.cuda.split(".")[0].isdigit() and fl.backends.cuda.is_built()
    assert fl.get_device_module("cuda") is cuda


@two_devices
def test_current_device():
    cuda.set_device(1)
    try:
        assert cuda.current_device() == 1 and fl.ones(1, device="cuda").device.index == 1
        assert fl.Generator("cuda").device.index == 1 and cuda.current_stream().device.index == 1
        cuda.set_device(-1)
        assert cuda.current_device() == 1
    finally:
        cuda.set_device("cuda:0")
    with cuda.device(1) as d:
        assert d.idx == 1 and cuda.current_device() == 1
        with cuda.device(None), cuda.device(-1):
            assert cuda.current_device() == 1
    with cuda.device_of(fl.ones(1, device="cuda:1")), cuda.device_of(fl.ones(1)):
        assert cuda.current_device() == 1
    assert cuda.current_device() == 0 and cuda.can_device_access_peer(0, "cuda:1")


@two_devices
def test_compiled_functions_follow_the_current_device():
    f = fl.compile(lambda: fl.ones(2, device="cuda") * 2)

    def inside(x):
        with cuda.device(1):
            y = fl.ones(2, device="cuda")
        return y * 2, fl.ones(2, device="cuda") + x

    assert f().device.index == 0
    with cuda.device(1):
        assert f().device.index == 1
    assert f().device.index == 0
    for _ in range(2):
        y, z = fl.compile(inside)(1)
        assert y.device.index == 1 and z.device.index == 0 and cuda.current_device() == 0


def test_streams():
    s = cuda.Stream()
    assert cuda.current_stream() == cuda.default_stream() != s and cuda.default_stream().cuda_stream == 0
    with cuda.stream(s) as entered:
        assert entered is None and cuda.current_stream() == s
        with cuda.stream(None):
            assert cuda.current_stream() == s
        with s:
            assert cuda.current_stream() == s
    assert cuda.current_stream() == cuda.default_stream() and hash(s) == hash(s)
    x = fl.ones(3, device="cuda")
    s.wait_stream(cuda.current_stream())
    with s:
        y = x * 2
    cuda.current_stream().wait_stream(s)
    assert y.tolist() == [2, 2, 2]
    s.synchronize()
    assert s.query() and s.device == fl.device("cuda:0") and "cuda_stream" in repr(s)
    low, high = cuda.Stream.priority_range()
    assert low == 0 > high and cuda.Stream(priority=-1).priority == -1 and cuda.Stream(priority=5).priority == 0
    assert cuda.get_stream_from_external(s.cuda_stream) == cuda.ExternalStream(s.cuda_stream) == s
    assert cuda.Stream(stream_id=s.stream_id, device_index=0, device_type=s.device_index) == s
    assert not cuda.is_current_stream_capturing()


@two_devices
def test_streams_of_another_device():
    s = cuda.Stream(device=1)
    with cuda.stream(s):
        assert cuda.current_device() == 1 and cuda.current_stream() == s
        assert cuda.current_stream(0) == cuda.default_stream(0)
    assert cuda.current_device() == 0 and cuda.current_stream(1) == cuda.default_stream(1)


def test_events():
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    assert start.query() and "uninitialized" in repr(start)
    start.synchronize()
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    fl.ones(3, device="cuda") + 1
    end.record(cuda.current_stream())
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0 and end.device == fl.device("cuda:0")
    with pytest.raises(ValueError, match="enable_timing=True"):
        cuda.Event().elapsed_time(end)
    s = cuda.Stream()
    end.wait(s)
    s.wait_event(end)
    assert s.record_event().query() in (True, False)


def test_memory():
    gc.collect()
    cuda.empty_cache()
    before = cuda.memory_allocated()
    cuda.reset_peak_memory_stats()
    cuda.reset_accumulated_memory_stats()
    x = fl.empty(1 << 20, dtype=fl.uint8, device="cuda")
    y = fl.empty(3 << 20, dtype=fl.uint8, device="cuda")
    assert cuda.memory_allocated() == before + (4 << 20) <= cuda.memory_reserved(0)
    del y
    assert cuda.memory_allocated("cuda") == before + (1 << 20)
    assert cuda.max_memory_allocated() == before + (4 << 20) and cuda.max_memory_reserved() >= 4 << 20
    stats = cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == before + (1 << 20)
    assert stats["allocated_bytes.all.peak"] == stats["active_bytes.all.peak"] == before + (4 << 20)
    assert stats["allocated_bytes.all.allocated"] == 4 << 20 and stats["allocated_bytes.large_pool.freed"] == 3 << 20
    assert stats["allocation.all.allocated"] == 2 and stats["allocation.small_pool.allocated"] == 1
    assert stats["reserved_bytes.all.current"] == cuda.memory_reserved() and stats["num_ooms"] == 0
    assert stats["inactive_split_bytes.all.current"] >= 0 and stats["segment.all.current"] >= 2
    assert cuda.memory_stats_as_nested_dict()["allocation"]["all"]["allocated"] == 2
    assert "memory in tensors" in cuda.memory_summary() and "small pool" not in cuda.memory_summary(abbreviated=True)
    reserved = cuda.memory_reserved()
    cuda.empty_cache()
    assert cuda.memory_reserved() < reserved and x.sum().item() >= 0
    free, total = cuda.mem_get_info()
    assert 0 < free <= total
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() < before + (4 << 20)
    address = cuda.caching_allocator_alloc(1024)
    cuda.caching_allocator_delete(address)


def test_out_of_memory():
    total = cuda.get_device_properties().total_memory
    ooms = cuda.memory_stats()["num_ooms"]
    assert cuda.OutOfMemoryError is fl.OutOfMemoryError and issubclass(cuda.OutOfMemoryError, RuntimeError)
    with pytest.raises(cuda.OutOfMemoryError, match="CUDA out of memory. Tried to allocate"):
        fl.empty(2 * total, dtype=fl.uint8, device="cuda")
    cuda.empty_cache()
    cuda.set_per_process_memory_fraction(0.01)
    try:
        assert cuda.get_per_process_memory_fraction() == 0.01
        with pytest.raises(fl.OutOfMemoryError, match="may take"):
            fl.empty(total // 50, dtype=fl.uint8, device="cuda")
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    assert cuda.memory_stats()["num_ooms"] == ooms + 2
    with pytest.raises(TypeError, match="float"):
        cuda.set_per_process_memory_fraction(1)
    with pytest.raises(ValueError, match="Invalid fraction value: 2.0"):
        cuda.set_per_process_memory_fraction(2.0)


def test_random_numbers():
    fl.manual_seed(5)
    here, there = fl.rand(4), fl.rand(4, device="cuda")
    assert here.tolist() == there.tolist() and cuda.initial_seed() == 5
    state = cuda.get_rng_state()
    assert not state.is_cuda and state.dtype is fl.uint8
    a = fl.randn(3, device="cuda")
    cuda.set_rng_state(state)
    assert fl.randn(3, device="cuda").tolist() == a.tolist()
    cuda.set_rng_state_all(cuda.get_rng_state_all())
    cuda.manual_seed(9)
    a = fl.randn(3, device="cuda").tolist()
    cuda.manual_seed_all(9)
    assert fl.randn(3, device="cuda").tolist() == a
    with fl.random.fork_rng(devices=[0]):
        fl.randn(7, device="cuda"), fl.randn(2)
    with fl.random.fork_rng(devices=range(cuda.device_count())):
        fl.randn(7, device="cuda")
    b = fl.randn(3, device="cuda").tolist()
    cuda.manual_seed_all(9)
    fl.randn(3, device="cuda")
    assert fl.randn(3, device="cuda").tolist() == b
    cuda.seed_all()
    assert cuda.seed() is None
    assert len(cuda.default_generators) == cuda.device_count()
    fl.manual_seed(5)
    assert cuda.initial_seed() == 5


def test_accelerator():
    a = fl.accelerator
    assert a.is_available() and a.device_count() == cuda.device_count()
    assert a.current_accelerator() == a.current_accelerator(True) == fl.device("cuda")
    assert a.current_device_index() == 0 and a.current_stream() == cuda.current_stream()
    a.set_device_index(0)
    a.synchronize()
    with a.device_index(0), a.device_index(None):
        assert a.current_device_idx() == 0
    s = cuda.Stream()
    a.set_stream(s)
    assert a.current_stream() == s
    a.set_stream(cuda.default_stream())
    assert a.memory_allocated() == cuda.memory_allocated() and a.memory.memory_stats() == cuda.memory_stats()
    assert len(a.get_memory_info()) == 2 and fl.bfloat16 in a.get_device_capability()["supported_dtypes"]
    with pytest.raises(ValueError, match="doesn't match"):
        a.synchronize("cpu")


def test_precision_of_products_and_convolutions():
    matmul, cudnn = fl.backends.cuda.matmul, fl.backends.cudnn
    parts = {"matmul": fl._C._cuda.Tf32.Matmul, "convolution": fl._C._cuda.Tf32.Convolution}
    allowed = lambda part: fl._C._cuda.tf32_allowed(parts[part])  # noqa: E731
    assert not matmul.allow_tf32 and not allowed("matmul") and cudnn.allow_tf32 and allowed("convolution")
    assert fl.get_float32_matmul_precision() == "highest"
    try:
        for precision in ("high", "medium"):
            fl.set_float32_matmul_precision(precision)
            assert matmul.allow_tf32 and allowed("matmul") and matmul.fp32_precision == "tf32"
            assert fl.get_float32_matmul_precision() == precision
        fl.set_float32_matmul_precision("highest")
        assert not allowed("matmul")
        matmul.allow_tf32 = True
        assert allowed("matmul") and fl.get_float32_matmul_precision() == "high"
        matmul.fp32_precision = "ieee"
        assert not allowed("matmul") and matmul.fp32_precision == "ieee"
        with cudnn.flags(enabled=True, allow_tf32=False):
            assert cudnn.enabled and not cudnn.allow_tf32 and not allowed("convolution")
        assert allowed("convolution") and cudnn.conv.fp32_precision == "tf32"
        cudnn.allow_tf32 = False
        assert not allowed("convolution")
        cudnn.benchmark = cudnn.deterministic = True
        assert cudnn.benchmark and cudnn.deterministic
    finally:
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic = False, True, False, False
    with pytest.raises(AttributeError):
        matmul.alow_tf32 = True
    assert cudnn.is_available() == (cudnn.version() is not None)


def test_marks():
    assert cuda.nvtx.range_push("a") == 0 and cuda.nvtx.range_push("b") == 1 and cuda.nvtx.range_pop() == 1
    with cuda.nvtx.range("c"):
        cuda.nvtx.mark("d")
    assert cuda.nvtx.range_pop() == 0
