"""The state of the random number generators."""
import contextlib
import warnings

from . import _C
from ._C import default_generator, initial_seed, manual_seed, seed

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
           "set_rng_state",
           "thread_safe_generator"]


def get_rng_state():
    """The state of the CPU's generator, as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state):
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """Inside, draws do not change the generators that the program goes on with: the CPU's and those of the
    devices given, all unless some are.
    """
    if not enabled:
        yield
        return
    from . import cuda

    if devices is None:
        count = cuda.device_count() if device_type == "cuda" else 0
        if count > 1:
            warnings.warn(f"{_caller}() saves the random state of all {count} CUDA devices; give "
                          f"{_devices_kw}=[...] for those that are used, or range({count}) to mean all",
                          stacklevel=3)
        devices = range(count)
    devices = list(devices)
    state, states = get_rng_state(), [cuda.get_rng_state(d) for d in devices]
    try:
        yield
    finally:
        set_rng_state(state)
        for device, device_state in zip(devices, states):
            cuda.set_rng_state(device_state, device)


def thread_safe_generator():
    """The generator of a DataLoader's worker thread, if this is one."""
    return None
