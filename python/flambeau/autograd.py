"""Gradients of given tensors by given tensors."""
from ._C import _backward as backward
from ._C import _grad as grad
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled"]
