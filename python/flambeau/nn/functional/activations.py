"""Activation functions."""
import warnings

import flambeau as fl
from flambeau import (  # noqa: F401
    celu_, elu_, gelu, hardshrink, hardtanh_, leaky_relu_, prelu, relu_, rrelu_, selu_, softplus, softshrink,
    threshold_,
)
from flambeau._composites import _write

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid", "mish", "prelu",
    "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid", "silu", "softmax", "softmin",
    "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
]


def threshold(input, threshold, value, inplace=False):
    """input where it is greater than the threshold, value elsewhere."""
    return (fl.threshold_ if inplace else fl.threshold)(input, threshold, value)


def relu(input, inplace=False):
    """max(input, 0)."""
    return fl.relu_(input) if inplace else fl.relu(input)


def relu6(input, inplace=False):
    """min(max(input, 0), 6)."""
    return fl.relu6_(input) if inplace else fl.relu6(input)


def glu(input, dim=-1):
    """One half of the input times the sigmoid of the other half, along a dimension."""
    if input.dim() == 0:
        raise RuntimeError("glu(): a scalar cannot be halved; give an input with at least one dimension")
    return fl.glu(input, dim)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """The input between two bounds."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (fl.hardtanh_ if inplace else fl.hardtanh)(input, min_val, max_val)


def elu(input, alpha=1.0, inplace=False):
    """The input where positive, alpha (e^input - 1) elsewhere."""
    return (fl.elu_ if inplace else fl.elu)(input, alpha)


def selu(input, inplace=False):
    """elu with the constants that keep mean and variance."""
    return fl.selu_(input) if inplace else fl.selu(input)


def celu(input, alpha=1.0, inplace=False):
    """elu whose slope is continuous at 0."""
    return (fl.celu_ if inplace else fl.celu)(input, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """The input where positive, negative_slope times it elsewhere."""
    return (fl.leaky_relu_ if inplace else fl.leaky_relu)(input, negative_slope)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu whose slopes are drawn from [lower, upper] in training and are its middle otherwise."""
    return (fl.rrelu_ if inplace else fl.rrelu)(input, lower, upper, training)


def logsigmoid(input, *, out=None):
    """log(sigmoid(input))."""
    return _write(fl.log_sigmoid(input), out)


def tanhshrink(input):
    """input - tanh(input)."""
    return input - input.tanh()


def softsign(input):
    """input / (1 + |input|)."""
    return input / (input.abs() + 1)


def _softmax_dim(name, input, dim, stacklevel):
    if dim is not None:
        return dim
    dim = 0 if input.dim() in (0, 1, 3) else 1
    warnings.warn(f"{name}(): no 'dim' given, {dim} is taken; this choice is deprecated, so pass 'dim'.",
                  stacklevel=stacklevel)
    return dim


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """e^input divided by its sum along a dimension."""
    return fl.softmax(input, _softmax_dim("softmax", input, dim, _stacklevel), dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-input)."""
    return fl.softmax(-input, _softmax_dim("softmin", input, dim, _stacklevel), dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax(input)), without under- and overflow."""
    return fl.log_softmax(input, _softmax_dim("log_softmax", input, dim, _stacklevel), dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the categories that logits describe, softened by the temperature tau.

    hard: one-hot, with the gradient of the soft sample.
    """
    if eps != 1e-10:
        warnings.warn("gumbel_softmax(): 'eps' is deprecated and changes nothing.", stacklevel=2)
    exponential = -fl.log1p(-fl.rand_like(logits))
    soft = ((logits - exponential.log()) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return fl.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft


def tanh(input):
    return input.tanh()


def sigmoid(input):
    return input.sigmoid()


def hardsigmoid(input, inplace=False):
    """min(max(input + 3, 0), 6) / 6."""
    return fl.hardsigmoid_(input) if inplace else fl.hardsigmoid(input)


def silu(input, inplace=False):
    """input * sigmoid(input)."""
    return fl.silu_(input) if inplace else fl.silu(input)


def mish(input, inplace=False):
    """input * tanh(softplus(input))."""
    return fl.mish_(input) if inplace else fl.mish(input)


def hardswish(input, inplace=False):
    """input * hardsigmoid(input)."""
    return fl.hardswish_(input) if inplace else fl.hardswish(input)
