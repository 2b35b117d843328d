"""Variable, PyTorch's old name of a Tensor that takes part in differentiation."""
from .._C import Tensor


class _VariableMeta(type):
    def __instancecheck__(cls, value):
        return isinstance(value, Tensor)

    def __call__(cls, data, requires_grad=False, volatile=False):
        return data.detach().requires_grad_(requires_grad) if requires_grad else data


class Variable(metaclass=_VariableMeta):
    """Variable(data) is data; every Tensor is an instance."""
