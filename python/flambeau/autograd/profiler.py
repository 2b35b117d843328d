"""Older names of torch.profiler."""
import contextlib

from .. import profiler
from ..profiler import record_function

__all__ = ["emit_itt", "emit_nvtx", "profile", "record_function"]


class profile(profiler.profile):
    """As torch.profiler.profile, without a schedule; enabled=False records nothing. Other options have no
    effect.
    """

    def __init__(self, enabled=True, **options):
        super().__init__()
        self._enabled = enabled

    def start(self):
        if self._enabled:
            super().start()


class emit_nvtx(contextlib.nullcontext):
    """A scope that has no effect: it would send marks to NVIDIA's tools."""

    def __init__(self, enabled=True, record_shapes=False):
        super().__init__(self)


class emit_itt(emit_nvtx):
    """A scope that has no effect: it would send marks to Intel's tools."""
