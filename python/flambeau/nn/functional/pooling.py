"""Pooling: one number for each window.

return_indices adds the chosen elements' positions in the flattened image.
"""
import math

import flambeau as fl
from flambeau import adaptive_avg_pool1d, avg_pool1d  # noqa: F401
from flambeau._composites import _write

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d",
    "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d",
    "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]


def _list(value, count):
    """A number as a list of that many."""
    return list(value) if isinstance(value, (list, tuple)) else [value] * count


def _or_none(value):
    return [] if value is None else value


def _check_not_empty(input, dimensions, name):
    """All dimensions but the batch's have elements."""
    if 0 in input.shape[-dimensions:]:
        raise RuntimeError(f"{name}(): only the batch dimension of 'input' may be 0, got {list(input.shape)}")


# --- maximum ---
def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False):
    return fl.max_pool1d_with_indices(input, kernel_size, _or_none(stride), padding, dilation, ceil_mode)


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False):
    return fl.max_pool2d_with_indices(input, kernel_size, _or_none(stride), padding, dilation, ceil_mode)


def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False):
    return fl.max_pool3d_with_indices(input, kernel_size, _or_none(stride), padding, dilation, ceil_mode)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum of each window."""
    if input.dim() not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError("max_pool1d(): 'input' must be (N, C, L) or (C, L), where only N may be 0; "
                           f"got {list(input.shape)}")
    pool = fl.max_pool1d_with_indices if return_indices else fl.max_pool1d
    return pool(input, kernel_size, _or_none(stride), padding, dilation, ceil_mode)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum of each window."""
    _check_not_empty(input, 3, "max_pool2d")
    pool = fl.max_pool2d_with_indices if return_indices else fl.max_pool2d
    return pool(input, kernel_size, _or_none(stride), padding, dilation, ceil_mode)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum of each window."""
    _check_not_empty(input, 4, "max_pool3d")
    pool = fl.max_pool3d_with_indices if return_indices else fl.max_pool3d
    return pool(input, kernel_size, _or_none(stride), padding, dilation, ceil_mode)


def _fractional(dimensions, input, kernel_size, output_size, output_ratio, samples):
    if output_size is None and output_ratio is None:
        raise ValueError(f"fractional_max_pool{dimensions}d(): give 'output_size' or 'output_ratio'")
    if input.dim() not in (dimensions + 1, dimensions + 2):
        raise RuntimeError(f"fractional_max_pool{dimensions}d(): expected an input of {dimensions + 1} or "
                           f"{dimensions + 2} dimensions, got one of shape {input.shape}")
    if output_size is None:
        ratios = _list(output_ratio, dimensions)
        output_size = [int(n * r) for n, r in zip(input.shape[-dimensions:], ratios)]
    if samples is None:
        batch = 1 if input.dim() == dimensions + 1 else input.size(0)
        shape = (batch, input.size(-dimensions - 1), dimensions)
        samples = fl.rand(shape, dtype=input.dtype, device=input.device)
    if input.dim() == dimensions + 1 and samples.size(0) > 1:
        samples = samples[:1]
    pool = fl.fractional_max_pool2d if dimensions == 2 else fl.fractional_max_pool3d
    return pool(input, _list(kernel_size, dimensions), _list(output_size, dimensions), samples)


def fractional_max_pool2d_with_indices(input, kernel_size, output_size=None, output_ratio=None,
                                       return_indices=False, _random_samples=None):
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(input, kernel_size, output_size=None, output_ratio=None,
                                       return_indices=False, _random_samples=None):
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
                          _random_samples=None):
    """The maximum of windows at random places, as many as output_size (or output_ratio of the input) says."""
    result = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


def fractional_max_pool3d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
                          _random_samples=None):
    """The maximum of windows at random places, as many as output_size (or output_ratio of the input) says."""
    result = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


def _unpooled_size(input, kernel_size, stride, padding, output_size):
    """The size of the image that was pooled; output_size may differ from it by less than a stride."""
    count = len(kernel_size)
    default = [(n - 1) * s - 2 * p + k
               for n, s, p, k in zip(input.shape[-count:], stride, padding, kernel_size)]
    if output_size is None:
        return default
    output_size = list(output_size)
    if len(output_size) == count + 2:
        output_size = output_size[2:]
    if len(output_size) != count:
        raise ValueError(f"'output_size' must have {count} or {count + 2} numbers, got {len(output_size)}")
    for size, middle, s in zip(output_size, default, stride):
        if not middle - s < size < middle + s:
            raise ValueError("'output_size' must lie strictly between "
                             f"{[m - t for m, t in zip(default, stride)]} and "
                             f"{[m + t for m, t in zip(default, stride)]}, got {output_size}")
    return output_size


def _unpool(dimensions, input, indices, kernel_size, stride, padding, output_size):
    kernel_size, padding = _list(kernel_size, dimensions), _list(padding, dimensions)
    stride = kernel_size if stride is None else _list(stride, dimensions)
    size = _unpooled_size(input, kernel_size, stride, padding, output_size)
    if dimensions == 1:
        return fl.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)
    if dimensions == 2:
        return fl.max_unpool2d(input, indices, size)
    return fl.max_unpool3d(input, indices, size, stride, padding)


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The elements that max_pool1d chose, at their places, among zeros."""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The elements that max_pool2d chose, at their places, among zeros."""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The elements that max_pool3d chose, at their places, among zeros."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


# --- means ---
def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None, *, out=None):
    """The mean of each window; padding counts as 0, and as elements if count_include_pad."""
    return _write(fl.avg_pool2d(input, kernel_size, _or_none(stride), padding, ceil_mode, count_include_pad,
                                divisor_override), out)


def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None, *, out=None):
    """The mean of each window; padding counts as 0, and as elements if count_include_pad."""
    return _write(fl.avg_pool3d(input, kernel_size, _or_none(stride), padding, ceil_mode, count_include_pad,
                                divisor_override), out)


# --- powers ---
def _lp_pool(dimensions, average, input, norm_type, kernel_size, stride, ceil_mode):
    kernel = _list(kernel_size, dimensions)
    mean = average(input.pow(norm_type), kernel, _or_none(stride), 0, ceil_mode)
    return (fl.sign(mean) * fl.relu(fl.abs(mean))).mul(math.prod(kernel)).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The norm of each window: the sum of powers, to the power 1 / norm_type."""
    return _lp_pool(1, fl.avg_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The norm of each window: the sum of powers, to the power 1 / norm_type."""
    return _lp_pool(2, fl.avg_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The norm of each window: the sum of powers, to the power 1 / norm_type."""
    return _lp_pool(3, fl.avg_pool3d, input, norm_type, kernel_size, stride, ceil_mode)


# --- windows that divide the input ---
def _sizes(output_size, input, dimensions):
    """None stands for the input's own size."""
    own = input.shape[-dimensions:]
    if isinstance(output_size, int):
        output_size = [output_size] * dimensions
    if input.dim() <= len(output_size):
        raise ValueError(f"'input' must have at least {len(output_size) + 1} dimensions, "
                         f"it has {input.dim()}")
    return [n if size is None else size for size, n in zip(output_size, own)]


def adaptive_avg_pool2d(input, output_size):
    """The mean of windows that divide the input into output_size parts; None keeps a dimension's size."""
    return fl.adaptive_avg_pool2d(input, _sizes(output_size, input, 2))


def adaptive_avg_pool3d(input, output_size):
    """The mean of windows that divide the input into output_size parts; None keeps a dimension's size."""
    return fl.adaptive_avg_pool3d(input, _sizes(output_size, input, 3))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    return fl.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    return fl.adaptive_max_pool2d(input, _sizes(output_size, input, 2))


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    return fl.adaptive_max_pool3d(input, _sizes(output_size, input, 3))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The maximum of windows that divide the input into output_size parts."""
    result = adaptive_max_pool1d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The maximum of windows that divide the input into output_size parts; None keeps a dimension's size."""
    result = adaptive_max_pool2d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The maximum of windows that divide the input into output_size parts; None keeps a dimension's size."""
    result = adaptive_max_pool3d_with_indices(input, output_size)
    return result if return_indices else result[0]
