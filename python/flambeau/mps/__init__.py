"""Devices of type 'mps' are not supported: queries say so, and what would need one raises an error."""
from ..accelerator._absent import (device_count, empty_cache, is_available, is_bf16_supported,
                                   is_initialized, manual_seed, manual_seed_all, refusal, synchronize)

current_device = refusal(
    RuntimeError, "there is no device of type 'mps': Flambeau's eager mode runs on the CPU")
