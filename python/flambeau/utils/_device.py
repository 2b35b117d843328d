"""The mode that gives tensors a device."""
from .._types import _DeviceMode as DeviceContext

__all__ = ["DeviceContext"]
