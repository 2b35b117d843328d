"""The CUDA devices of this machine."""
import uuid

from .. import _C as _base

_C = _base._cuda


def device_count():
    return _C.device_count()


def is_available():
    return device_count() > 0


def is_initialized():
    return is_available()


def init():
    """Raises an error that says why there is no CUDA device; with one it has no effect."""
    if not is_available():
        if not _C.is_compiled:
            raise AssertionError(f"Torch not compiled with CUDA enabled: {_C.why()}")
        raise RuntimeError(f"no CUDA device can be used: {_C.why()}")


def index_of(where, otherwise=None):
    """The number of a device, given as a number, a name, a torch.device or None for the current one."""
    init()
    if where is None:
        return _C.current_device() if otherwise is None else otherwise
    if isinstance(where, int) and not isinstance(where, bool):
        return where if where >= 0 else _C.current_device()
    where = _base.device(where)
    if where.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {where}")
    return _C.current_device() if where.index is None else where.index


def current_device():
    init()
    return _C.current_device()


def set_device(device):
    """Makes the device the one that "cuda" means in this thread; a negative number changes nothing."""
    if not (isinstance(device, int) and device < 0):
        _C.set_device(index_of(device))


def synchronize(device=None):
    """Waits for all work on the device, and raises what its kernels reported."""
    _C.synchronize(index_of(device))


class device:
    """with torch.cuda.device(1): the device that "cuda" means inside. None or a negative number changes nothing."""

    def __init__(self, device):
        self.idx = -1 if device is None or (isinstance(device, int) and device < 0) else index_of(device)

    def __enter__(self):
        self.prev_idx = -1
        if self.idx >= 0:
            self.prev_idx = _C.current_device()
            _C.set_device(self.idx)
        return self

    def __exit__(self, *error):
        if self.prev_idx >= 0:
            _C.set_device(self.prev_idx)
        return False


class device_of(device):
    """The device of a tensor; one of the CPU changes nothing."""

    def __init__(self, obj):
        super().__init__(obj.device.index if obj.is_cuda else -1)


# Numbers of the driver for what else get_device_properties() tells.
_ATTRIBUTES = {"max_threads_per_block": 1, "shared_memory_per_block": 8, "clock_rate": 13, "is_integrated": 18,
               "pci_bus_id": 33, "pci_device_id": 34, "memory_clock_rate": 36, "memory_bus_width": 37,
               "pci_domain_id": 50, "shared_memory_per_multiprocessor": 81, "regs_per_multiprocessor": 82,
               "is_multi_gpu_board": 84}


class DeviceProperties:
    """What get_device_properties() gives: name, major, minor, total_memory, multi_processor_count, ..."""

    def __init__(self, index):
        vars(self).update(_C.facts(index))
        self.uuid = uuid.UUID(bytes=self.uuid)
        self._index = index

    def __getattr__(self, name):
        if name not in _ATTRIBUTES:
            raise AttributeError(f"a CUDA device has no property {name!r}")
        return _C.attribute(self._index, _ATTRIBUTES[name])

    def __repr__(self):
        return (f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
                f"total_memory={self.total_memory // 2**20}MB, "
                f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
                f"L2_cache_size={self.L2_cache_size // 2**20}MB)")


def get_device_properties(device=None):
    index = index_of(device)
    if index >= device_count():
        raise AssertionError(f"Invalid device id: expected one below {device_count()}, got {index}")
    return DeviceProperties(index)


def get_device_name(device=None):
    return get_device_properties(device).name


def get_device_capability(device=None):
    facts = get_device_properties(device)
    return facts.major, facts.minor


def can_device_access_peer(device, peer_device):
    """Whether one device reaches the memory of another; copies between them work either way."""
    index, peer = index_of(device), index_of(peer_device)
    for wrong in (index, peer):
        if wrong >= device_count():
            raise AssertionError(f"Invalid device id: expected one below {device_count()}, got {wrong}")
    return index != peer and _C.can_access_peer(index, peer)


def is_bf16_supported(including_emulation=True):
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported():
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list():
    """Machine code is made for the devices that are there."""
    return sorted({"sm_%d%d" % get_device_capability(d) for d in range(device_count())})


def get_gencode_flags():
    return " ".join(f"-gencode compute={a.replace('sm', 'compute')},code={a}" for a in get_arch_list())
