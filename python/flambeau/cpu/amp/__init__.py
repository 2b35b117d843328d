"""Older names of torch.amp for the CPU."""
from ... import _C
from ...amp import GradScaler as _GradScaler
from ...amp import autocast as _autocast

__all__ = ["GradScaler", "autocast"]


class autocast(_autocast):
    def __init__(self, enabled=True, dtype=_C.bfloat16, cache_enabled=True):
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    def __init__(self, *args, **kwargs):
        super().__init__("cpu", *args, **kwargs)
