"""PyTorch's compiler: compile() is Flambeau's own. Its options are kept."""
from . import config

__all__ = ["config"]


def list_mode_options(mode=None, dynamic=None):
    return {}


def list_options():
    return []
