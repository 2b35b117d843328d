"""AdamW, where PyTorch has it; it is defined beside Adam."""
from .adam import AdamW

__all__ = ["AdamW"]
