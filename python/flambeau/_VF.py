"""The operators as functions, by the name that layers written for PyTorch call them: torch._VF.lstm."""
from . import _C


def __getattr__(name):
    try:
        return getattr(_C, name)
    except AttributeError:
        raise AttributeError(f"module 'torch._VF' (Flambeau) has no operator '{name}'") from None
