"""What the modules of devices that are not there answer: queries say so, and work raises an error."""


def is_available():
    return False


def is_initialized():
    return False


def device_count():
    return 0


def is_bf16_supported(including_emulation=True):
    return False


def nothing(*args, **kwargs):
    """Has no effect: there is no device to wait for, to seed or to clear."""


synchronize = empty_cache = manual_seed = manual_seed_all = nothing


def zero(*args, **kwargs):
    """0: there is no device whose memory could be in use."""
    return 0


def memory_stats(device=None):
    return {}


def refusal(error, message):
    """A function that raises the error whatever it is called with."""
    def refuse(*args, **kwargs):
        raise error(message)

    return refuse
