"""Quantization, where PyTorch has it."""
from . import quantization

__all__ = ["quantization"]
