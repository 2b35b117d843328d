"""Random numbers on CUDA devices.

Numbers are addressed by (seed, offset): a device draws what the CPU would.
"""
from .. import _C
from ._devices import device_count, index_of


def _generator(index):
    return _C._default_generator(_C.device("cuda", index))


def get_rng_state(device="cuda"):
    return _generator(index_of(device)).get_state()


def get_rng_state_all():
    return [get_rng_state(d) for d in range(device_count())]


def set_rng_state(new_state, device="cuda"):
    if device_count():
        _generator(index_of(device)).set_state(new_state.cpu())


def set_rng_state_all(new_states):
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed):
    """Seeds the current device; without one it has no effect."""
    if device_count():
        _generator(index_of(None)).manual_seed(int(seed))


def manual_seed_all(seed):
    for index in range(device_count()):
        _generator(index).manual_seed(int(seed))


def seed():
    """Gives the current device a random seed."""
    if device_count():
        _generator(index_of(None)).seed()


def seed_all():
    """One random seed for all devices."""
    if device_count():
        manual_seed_all(_generator(index_of(None)).seed())


def initial_seed():
    return _generator(index_of(None)).initial_seed()
