"""Tensors from and to other libraries."""
from .._C import from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor):
    """A capsule with the tensor's memory."""
    return tensor.__dlpack__()
