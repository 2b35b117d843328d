"""Normalisation, dropout, distances."""
import math

import flambeau as fl
from flambeau import cosine_similarity, pairwise_distance  # noqa: F401

__all__ = [
    "alpha_dropout", "batch_norm", "cosine_similarity", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "feature_alpha_dropout", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize",
    "pairwise_distance", "pdist", "rms_norm",
]


# --- normalisation ---
def _check_more_than_one(size):
    """Statistics of a channel need more than one value."""
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(f"training needs more than 1 value per channel, got input size {size}")


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1,
               eps=1e-5):
    """(input - mean) / sqrt(var + eps) for each channel, by the batch (training) or the running statistics.

    In training the running statistics move towards the batch's by the momentum.
    """
    if training:
        if eps <= 0.0:
            raise ValueError(f"batch_norm(): 'eps' must be positive in training, got {eps}")
        _check_more_than_one(input.size())
    elif eps < 0.0:
        raise ValueError(f"batch_norm(): 'eps' must be at least 0, got {eps}")
    if input.dim() < 2 and input.numel() == 0:
        return input.clone()
    return fl.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5):
    """batch_norm of each image by itself."""
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError("instance_norm(): an image needs more than 1 position, "
                         f"got input size {input.size()}")
    return fl.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps,
                            True)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """(input - mean) / sqrt(var + eps) over the last dimensions, which normalized_shape names."""
    return fl.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """input / sqrt(mean(input^2) + eps) over the last dimensions, which normalized_shape names."""
    return fl.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """(input - mean) / sqrt(var + eps) over the channels of a group and all positions."""
    if input.dim() < 2:
        raise RuntimeError(f"group_norm(): 'input' must have at least 2 dimensions, it has {input.dim()}")
    if input.size(1) == 0:
        raise RuntimeError(f"group_norm(): 'input' must have at least one channel, got {input.size(1)}")
    if 0 in input.shape[2:]:
        raise RuntimeError(f"group_norm(): 'input' must have at least one position, got {input.size()}")
    _check_more_than_one([input.size(0) * input.size(1) // num_groups, num_groups, *input.shape[2:]])
    return fl.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """input / (k + alpha mean(input^2 over `size` neighbouring channels))^beta."""
    dim = input.dim()
    if dim < 3:
        raise ValueError(f"local_response_norm(): 'input' must have at least 3 dimensions, it has {dim}")
    if input.numel() == 0:
        return input
    square = input.mul(input).unsqueeze(1)
    around = [size // 2, (size - 1) // 2]
    if dim == 3:
        mean = fl.avg_pool2d(fl.pad(square, [0, 0, *around]), [size, 1], 1).squeeze(1)
    else:
        sizes = input.size()
        square = square.view(sizes[0], 1, sizes[1], sizes[2], -1)
        mean = fl.avg_pool3d(fl.pad(square, [0, 0, 0, 0, *around]), [size, 1, 1], 1).squeeze(1).view(sizes)
    return input / mean.mul(alpha).add(k).pow(beta)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """The input divided by its norm along dim, or by eps if that is larger."""
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else fl.div(input, norm, out=out)


def pdist(input, p=2):
    """The norm p of the differences of every two rows, in order."""
    return fl.pdist(input, p)


# --- dropout ---
def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout: the probability 'p' must lie between 0 and 1, got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeros elements with probability p and divides the rest by 1 - p, in training."""
    _check_probability(p)
    return fl.dropout_(input, p, training) if inplace else fl.dropout(input, p, training)


def _channel_dropout(input, p, training, inplace):
    """Whole channels of (N, C, ...) at a time."""
    if not training or p == 0 or input.numel() == 0:
        return input
    shape = [*input.shape[:2], *[1] * (input.dim() - 2)]
    kept = fl.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    if p < 1:
        kept = kept / (1 - p)
    return input.mul_(kept) if inplace else input * kept


def dropout1d(input, p=0.5, training=True, inplace=False):
    """dropout of whole channels of (N, C, L) or (C, L)."""
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d(): 'input' must be (N, C, L) or (C, L), got {input.dim()} dimensions")
    return _batched_channel_dropout(input, 3, p, training, inplace)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """dropout of whole channels of (N, C, H, W) or (N, C, L)."""
    _check_probability(p)
    return _channel_dropout(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    _check_probability(p)
    return _batched_channel_dropout(input, 5, p, training, inplace)


def _batched_channel_dropout(input, rank, p, training, inplace):
    """The same, of (C, ...) too; rank is that of a batch."""
    if input.dim() == rank:
        return _channel_dropout(input, p, training, inplace)
    result = _channel_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return input if inplace else result


def _alpha_dropout(input, p, training, inplace, shape):
    """Elements become selu's lowest value with probability p; then mean and variance are set right."""
    if not training or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    alpha = 1.7580993408473766
    scale = 1.0 / ((alpha * alpha * p + 1) * (1 - p)) ** 0.5
    kept = fl.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    shift = (kept - 1) * (alpha * scale) + alpha * scale * p
    kept = kept * scale
    return input.mul_(kept).add_(shift) if inplace else input * kept + shift


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that goes with selu: mean and variance stay."""
    _check_probability(p)
    return _alpha_dropout(input, p, training, inplace, input.shape)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels of (N, C, ...)."""
    _check_probability(p)
    if input.dim() < 2 and training and p > 0 and input.numel() > 0:
        raise RuntimeError("feature_alpha_dropout(): 'input' must have at least 2 dimensions (N, C, ...)")
    return _alpha_dropout(input, p, training, inplace, [*input.shape[:2], *[1] * (input.dim() - 2)])
