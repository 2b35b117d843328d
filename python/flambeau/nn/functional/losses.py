"""Loss functions. reduction is "none", "mean" or "sum"; size_average and reduce are its old form."""
import math
import warnings

import flambeau as fl
from flambeau.nn import _reduction as _Reduction

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy", "ctc_loss",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "linear_cross_entropy",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _warn_if_broadcast(input, target):
    if target.size() != input.size():
        warnings.warn(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
                      "This will likely lead to incorrect results due to broadcasting. Please ensure they have the "
                      "same size.", stacklevel=3)


def _check_positions(input, target):
    """Of class numbers at many positions: one for each position."""
    if input.dim() > 2 and input.dim() == target.dim() + 1 and input.size(0) == target.size(0):
        expected = [input.size(0), *input.shape[2:]]
        if list(target.shape) != expected:
            raise RuntimeError(f"Expected target size {expected}, got {list(target.shape)}")


def _weighted(losses, weight, reduction):
    """Losses times weights; the mean is by the sum of the weights."""
    if weight is None:
        return _Reduction.reduced(losses, reduction)
    if weight.size() != losses.size():
        raise ValueError("Weights and input must have the same size.")
    weighted = losses * weight
    return weighted.sum() / weight.sum() if reduction == "mean" else _Reduction.reduced(weighted, reduction)


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):
    """The negative logarithm of softmax(input) at target, class numbers or probabilities, along dimension 1."""
    number = _Reduction.of(reduction, size_average, reduce)
    if target.is_floating_point() and input.shape == target.shape and ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    _check_positions(input, target)
    return fl.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Minus the input, logarithms of probabilities along dimension 1, at target."""
    _check_positions(input, target)
    return fl.nll_loss_nd(input, target, weight, _Reduction.of(reduction, size_average, reduce), ignore_index)


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean",
                         ignore_index=None, label_smoothing=0.0, options=None):
    """cross_entropy of a linear map: logits (..., classes, *rest) of linear_weight (classes, *rest, in_features)."""
    classes = linear_weight.shape[:-1]
    flat_bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = fl.linear(input, linear_weight.reshape(-1, linear_weight.size(-1)), flat_bias)
    logits = logits.reshape(*input.shape[:-1], *classes)
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if input.dim() == 1 and linear_weight.dim() > 2:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires "
                           f"batched input, (N, {linear_weight.size(-1)}), got unbatched input")
    if input.dim() == 2 and input.size(0) != target.size(0):
        raise ValueError(f"Expected input batch_size ({input.size(0)}) to match target batch_size ({target.size(0)}).")
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, reduction=reduction, ignore_index=ignore_index,
                         label_smoothing=label_smoothing)


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
                     reduction="mean"):
    """Minus the log-likelihood of a Poisson distribution; full adds Stirling's approximation of log(target!)."""
    if size_average is not None or reduce is not None:
        reduction = _Reduction.legacy_get_string(size_average, reduce)
    input = input if input.is_floating_point() else input.to(fl.get_default_dtype())
    return fl.poisson_nll_loss(input, target, log_input, full, eps, _Reduction.get_enum(reduction))


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Minus the log-likelihood of a normal distribution with this mean and variance; full adds the constant."""
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = fl.full_like(input, var)
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif sum(v for n, v in zip(input.size(), var.size()) if n != v) != 1:  # one dimension may be of size 1
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    with fl.no_grad():
        floor = (eps - var).clamp_min(0)
    var = var + floor  # at least eps, with the gradient of var
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _Reduction.reduced(loss, reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target (log(target) - input): the input holds logarithms; reduction "batchmean" divides by the batch size."""
    if size_average is not None or reduce is not None:
        number = _Reduction.legacy_get_enum(size_average, reduce)
    else:
        if reduction == "mean":
            warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size. "
                          "'batchmean' divides only by the batch size, and aligns with the KL div math definition. "
                          "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
                          stacklevel=2)
        number = _Reduction.get_enum("sum" if reduction == "batchmean" else reduction)
    loss = fl.kl_div(input, target, number, log_target=log_target)
    return loss / input.size(0) if reduction == "batchmean" and input.dim() != 0 else loss


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-(target log(input) + (1 - target) log(1 - input)), logarithms not below -100."""
    number = _Reduction.of(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) "
                         "is deprecated. Please ensure they have the same size.")
    if weight is not None:
        weight = weight.expand(fl.broadcast_shapes(target.size(), weight.size()))
    return fl.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                                     pos_weight=None):
    """binary_cross_entropy(sigmoid(input), target), without overflow; pos_weight multiplies what target marks."""
    number = _Reduction.of(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return fl.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """|input - target|."""
    if size_average is not None or reduce is not None:
        reduction = _Reduction.legacy_get_string(size_average, reduce)
    _warn_if_broadcast(input, target)
    if weight is None:
        return fl.l1_loss(input, target, _Reduction.get_enum(reduction))
    return _weighted(fl.l1_loss(input, target, 0), weight, reduction)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """(input - target)^2."""
    if size_average is not None or reduce is not None:
        reduction = _Reduction.legacy_get_string(size_average, reduce)
    _warn_if_broadcast(input, target)
    if weight is None:
        return fl.mse_loss(input, target, _Reduction.get_enum(reduction))
    return _weighted(fl.mse_loss(input, target, 0), weight, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """d^2 / (2 beta) where d = |input - target| is less than beta, d - beta / 2 elsewhere."""
    _warn_if_broadcast(input, target)
    number = _Reduction.of(reduction, size_average, reduce)
    return fl.l1_loss(input, target, number) if beta == 0 else fl.smooth_l1_loss(input, target, number, beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """d^2 / 2 where d = |input - target| is at most delta, delta (d - delta / 2) elsewhere."""
    _warn_if_broadcast(input, target)
    if weight is None:
        return fl.huber_loss(input, target, _Reduction.get_enum(reduction), delta)
    return _weighted(fl.huber_loss(input, target, 0, delta), weight, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + e^(-target input)), target being 1 or -1."""
    return fl.soft_margin_loss(input, target, _Reduction.of(reduction, size_average, reduce))


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target (input1 - input2) + margin)."""
    number = _Reduction.of(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
                           f"{input1.size()}, input2: {input2.size()}, target: {target.size()} ")
    return fl.margin_ranking_loss(input1, input2, target, margin, number)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """The input where target is 1, max(0, margin - input) where it is -1."""
    return fl.hinge_embedding_loss(input, target, margin, _Reduction.of(reduction, size_average, reduce))


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    return fl.cosine_embedding_loss(input1, input2, target, margin, _Reduction.of(reduction, size_average, reduce))


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Mean over the other classes of max(0, margin - input[target] + input[class])^p, times the target's weight."""
    number = _Reduction.of(reduction, size_average, reduce)
    if p != 1 and p != 2:
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return fl.multi_margin_loss(input, target, p, margin, weight, number)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Sum of max(0, 1 - input[label] + input[class]) over labels and the classes that are none, by the classes' number.

    A row of target lists the labels and ends at the first -1.
    """
    return fl.multilabel_margin_loss(input, target, _Reduction.of(reduction, size_average, reduce))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over the classes of the binary cross entropy of sigmoid(input)."""
    if size_average is not None or reduce is not None:
        reduction = _Reduction.legacy_get_string(size_average, reduce)
    loss = -(target * fl.log_sigmoid(input) + (1 - target) * fl.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _Reduction.reduced(loss.sum(dim=-1) / input.size(-1), reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None,
                        reduce=None, reduction="mean"):
    """max(0, |anchor - positive| - |anchor - negative| + margin), in the norm p along the last dimension."""
    number = _Reduction.of(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return fl.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
                                      reduction="mean"):
    """triplet_margin_loss with any distance function of two tensors."""
    distance = distance_function or fl.pairwise_distance
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(f"The anchor, positive, and negative tensors are expected to have the same number of "
                           f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
                           f"{negative.ndim}D inputs")
    to_positive, to_negative = distance(anchor, positive), distance(anchor, negative)
    if swap:
        to_negative = fl.minimum(to_negative, distance(positive, negative))
    return _Reduction.reduced(fl.clamp_min(margin + to_positive - to_negative, 0), reduction)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Connectionist temporal classification: minus the log-probability of all alignments of targets with the input.

    log_probs: (time, batch, classes) or (time, classes). zero_infinity: impossible alignments cost nothing.
    """
    return fl.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _Reduction.get_enum(reduction),
                       zero_infinity)
