"""The CUDA devices of this machine."""
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
        raise AssertionError(f"Torch not compiled with CUDA enabled, or no device to use: {_C.why()}"
                             if not _C.is_compiled else f"no CUDA device can be used: {_C.why()}")


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
    return where.index


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


class DeviceProperties:
    """What get_device_properties() gives: name, major, minor, total_memory, multi_processor_count, ..."""

    def __init__(self, facts):
        vars(self).update(facts)

    def __repr__(self):
        return (f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
                f"total_memory={self.total_memory // 2**20}MB, multi_processor_count={self.multi_processor_count})")


def get_device_properties(device=None):
    index = index_of(device)
    if index >= device_count():
        raise AssertionError(f"Invalid device id: expected one below {device_count()}, got {index}")
    return DeviceProperties(_C.facts(index))


def get_device_name(device=None):
    return get_device_properties(device).name


def get_device_capability(device=None):
    facts = get_device_properties(device)
    return facts.major, facts.minor


def can_device_access_peer(device, peer_device):
    """Copies between devices go through the driver, which uses a direct way where there is one."""
    return index_of(device) != index_of(peer_device)


def is_bf16_supported(including_emulation=True):
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported():
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list():
    """Machine code is made for the devices that are there."""
    return sorted({"sm_%d%d" % get_device_capability(d) for d in range(device_count())})


def get_gencode_flags():
    return " ".join(f"-gencode compute={a.replace('sm', 'compute')},code={a}" for a in get_arch_list())
