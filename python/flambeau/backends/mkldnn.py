"""oneDNN: Flambeau's library for products, convolutions and attention on the CPU."""
from ._switches import scope

enabled, deterministic, allow_tf32, fp32_precision = True, False, True, "none"
flags = scope(globals(), enabled=True, deterministic=False, allow_tf32=True, fp32_precision="none")


def is_available():
    return True


def set_flags(_enabled=None, _deterministic=None, _allow_tf32=None, _fp32_precision=None):
    names = dict(enabled=_enabled, deterministic=_deterministic, allow_tf32=_allow_tf32, fp32_precision=_fp32_precision)
    before = tuple(globals()[name] for name in names)
    globals().update({name: value for name, value in names.items() if value is not None})
    return before


VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2


class verbose:
    """Accepted."""

    def __init__(self, level):
        self.level = level

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False
