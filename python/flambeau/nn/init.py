"""First values of parameters. Each function fills a tensor in place, without gradients, and returns it."""
import math
import warnings

import flambeau as fl

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal",
    "kaiming_normal_", "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal",
    "orthogonal_", "sparse", "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal",
    "xavier_normal_", "xavier_uniform", "xavier_uniform_", "zeros_",
]

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
           "sigmoid")


def calculate_gain(nonlinearity, param=None):
    """The factor that keeps the variance through a nonlinearity; param is leaky_relu's negative slope."""
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Uniform on [a, b)."""
    with fl.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normal with this mean and standard deviation."""
    with fl.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal within [a, b] only: the inverse of the distribution function on uniforms."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(f"trunc_normal_: mean {mean} lies over 2 'std' outside [{a}, {b}]; the values may not "
                      "be distributed as asked.", stacklevel=2)

    def below(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    with fl.no_grad():
        low, high = below((a - mean) / std), below((b - mean) / std)
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator).erfinv_()
        return tensor.mul_(std * math.sqrt(2.0)).add_(mean).clamp_(min=a, max=b)


def constant_(tensor, val):
    with fl.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    return constant_(tensor, 1.0)


def zeros_(tensor):
    return constant_(tensor, 0.0)


def eye_(tensor):
    """The identity matrix."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with fl.no_grad():
        return tensor.copy_(fl.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor, groups=1):
    """The kernel of a convolution that copies as many input channels as it can, in each group."""
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError(f"dirac_ needs a tensor of 3, 4 or 5 dimensions, not {dimensions}")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    out_in_group = sizes[0] // groups
    middle = tuple(size // 2 for size in sizes[2:])
    with fl.no_grad():
        tensor.zero_()
        for group in range(groups):
            for d in range(min(out_in_group, sizes[1])):
                tensor[(group * out_in_group + d, d, *middle)] = 1
        return tensor


def _calculate_fan_in_and_fan_out(tensor):
    """How many inputs an output has, and how many outputs an input has, of a weight (out, in, *kernel)."""
    if tensor.dim() < 2:
        raise ValueError(f"Fan in and fan out need a tensor of at least 2 dimensions, not {tensor.dim()}")
    kernel = math.prod(tensor.shape[2:])
    return tensor.size(1) * kernel, tensor.size(0) * kernel


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform with variance gain^2 * 2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal with variance gain^2 * 2 / (fan_in + fan_out)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def _reset_linear(weight, bias):
    """First values of a linear map or a convolution: uniform on +-1 / sqrt(inputs of an output)."""
    kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = _calculate_fan_in_and_fan_out(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        uniform_(bias, -bound, bound)


def _is_empty(tensor):
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform with variance gain^2 / fan (He et al., 2015); a is leaky_relu's negative slope."""
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal with variance gain^2 / fan."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1, generator=None):
    """A random matrix (the first dimension by the rest) with orthonormal rows or columns, times gain."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with fl.no_grad():
        flat = fl.empty(rows, columns, dtype=tensor.dtype, device=tensor.device)
        flat.normal_(0, 1, generator=generator)
        q, r = fl.linalg.qr(flat.t() if rows < columns else flat)
        q = q * fl.diagonal(r).sign()
        q = q.t() if rows < columns else q
        return tensor.copy_(q.reshape(tensor.shape)).mul_(gain)


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """A normal matrix with this share of each column set to 0."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with fl.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[fl.randperm(rows)[:zeros], column] = 0
        return tensor


def _old_name(new):
    def old(*args, **kwargs):
        warnings.warn(f"`nn.init.{old.__name__}` is an old name; call `nn.init.{new.__name__}`.",
                      FutureWarning, stacklevel=2)
        return new(*args, **kwargs)

    old.__name__ = new.__name__.rstrip("_")
    return old


uniform, normal, constant, eye, dirac = map(_old_name, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = map(_old_name, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_old_name, (kaiming_uniform_, kaiming_normal_))
orthogonal, sparse = map(_old_name, (orthogonal_, sparse_))
