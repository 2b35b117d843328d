"""Devices of this kind are not supported: queries say so."""


def is_available():
    return False


def device_count():
    return 0


def is_initialized():
    return False


def synchronize(device=None):
    """Nothing to wait for."""


def empty_cache():
    """Nothing to empty."""


def manual_seed(seed):
    """Nothing to seed."""


def manual_seed_all(seed):
    """Nothing to seed."""


def current_device():
    raise RuntimeError("there is no device of type 'mps'")


def is_bf16_supported(including_emulation=True):
    return False
