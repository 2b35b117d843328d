"""Older names of torch.ao.quantization."""
from ..ao.quantization import *  # noqa: F401, F403
from ..ao.quantization import __all__  # noqa: F401
