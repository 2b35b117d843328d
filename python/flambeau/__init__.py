"""Tensors, operators, automatic differentiation and compilation: the library's C++ under PyTorch's names."""
from . import _C
from ._C import *
from ._C import Tensor, device, dtype, memory_format
from .compile_function import compile
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from . import autograd

__version__ = "0.1.0"
