"""PyTorch's compiler: compile() is Flambeau's own, and has none of its options. Those in config are kept,
and nothing reads them."""
from . import config

__all__ = ["config"]


def list_mode_options(mode=None, dynamic=None):
    return {}


def list_options():
    return []
