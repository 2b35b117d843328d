"""Signal processing: window functions."""
from . import windows

__all__ = ["windows"]
