"""The state of the random number generators."""
import contextlib

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
    """Inside, draws do not change the generator that the program goes on with."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def thread_safe_generator():
    """The generator of a DataLoader's worker thread, if this is one."""
    return None
