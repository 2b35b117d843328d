"""oneDNN, for products, convolutions and attention on the CPU: nothing reads the switches kept here."""
from ._switches import scope, setter

enabled, deterministic, allow_tf32, fp32_precision = True, False, True, "none"
flags = scope(globals(), enabled=True, deterministic=False, allow_tf32=True, fp32_precision="none")
set_flags = setter(globals(), "enabled", "deterministic", "allow_tf32", "fp32_precision")


def is_available():
    return True


VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2


class verbose:
    """A scope that has no effect: oneDNN prints what ONEDNN_VERBOSE says when the program starts."""

    def __init__(self, level):
        self.level = level

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False
