"""Loss functions. reduction is "none", "mean" or "sum"; size_average and reduce are its old form."""
import math
import warnings

import flambeau as fl
from flambeau.nn import _reduction as _Reduction

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
    "ctc_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "linear_cross_entropy", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]


def _warn_if_broadcast(input, target):
    if target.size() != input.size():
        warnings.warn(f"'target' has size {target.size()}, 'input' {input.size()}: they are broadcast, which "
                      "is rarely what a loss should do. Give both one size.", stacklevel=3)


def _check_positions(input, target):
    """Of class numbers at many positions: one for each position."""
    if input.dim() > 2 and input.dim() == target.dim() + 1 and input.size(0) == target.size(0):
        expected = [input.size(0), *input.shape[2:]]
        if list(target.shape) != expected:
            raise RuntimeError(f"'target' must be of size {expected}, got {list(target.shape)}")


def _weighted(loss, weight, reduction):
    """loss(number of a reduction), its elements times weights if there are any; the mean is by their sum."""
    if weight is None:
        return loss(_Reduction.get_enum(reduction))
    losses = loss(_Reduction.get_enum("none"))
    if weight.size() != losses.size():
        raise ValueError(f"'weight' must be of the losses' size {losses.size()}, got {weight.size()}")
    weighted = losses * weight
    return weighted.sum() / weight.sum() if reduction == "mean" else _Reduction.reduced(weighted, reduction)


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                  reduction="mean", label_smoothing=0.0):
    """Minus the logarithm of softmax(input) at target, class numbers or probabilities, along dimension 1."""
    number = _Reduction.of(reduction, size_average, reduce)
    if target.is_floating_point() and input.shape == target.shape and ignore_index >= 0:
        raise RuntimeError("cross_entropy(): 'ignore_index' does not go with probabilities as target")
    _check_positions(input, target)
    return fl.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Minus the input, logarithms of probabilities along dimension 1, at target."""
    _check_positions(input, target)
    return fl.nll_loss_nd(input, target, weight, _Reduction.of(reduction, size_average, reduce), ignore_index)


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean",
                         ignore_index=None, label_smoothing=0.0, options=None):
    """cross_entropy of a linear map.

    The logits are (..., classes, *rest) for a linear_weight (classes, *rest, in_features). options has no
    effect here: the compiler decides how the work is divided.
    """
    if input.dim() not in (1, 2):
        raise RuntimeError("linear_cross_entropy(): 'input' must have 1 or 2 dimensions, "
                           f"it has {input.dim()}")
    if input.dim() == 1 and linear_weight.dim() > 2:
        raise RuntimeError("linear_cross_entropy(): a linear_weight of shape "
                           f"{tuple(linear_weight.shape)} needs an input of shape "
                           f"(N, {linear_weight.size(-1)}), got one without a batch")
    if input.dim() == 2 and input.size(0) != target.size(0):
        raise ValueError("linear_cross_entropy(): 'input' and 'target' must have one batch size, "
                         f"got {input.size(0)} and {target.size(0)}.")
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("linear_cross_entropy(): 'ignore_index' does not go with probabilities as target")
    ignore_index = -100 if ignore_index is None else ignore_index
    classes = linear_weight.shape[:-1]
    flat_bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = fl.linear(input, linear_weight.reshape(-1, linear_weight.size(-1)), flat_bias)
    logits = logits.reshape(*input.shape[:-1], *classes)
    return cross_entropy(logits, target, weight, reduction=reduction, ignore_index=ignore_index,
                         label_smoothing=label_smoothing)


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
                     reduction="mean"):
    """Minus the log-likelihood of a Poisson distribution.

    full: adds Stirling's approximation of log(target!).
    """
    number = _Reduction.of(reduction, size_average, reduce)
    input = input if input.is_floating_point() else input.to(fl.get_default_dtype())
    return fl.poisson_nll_loss(input, target, log_input, full, eps, number)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Minus the log-likelihood of a normal distribution with this mean and variance.

    full: adds the constant.
    """
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("gaussian_nll_loss(): 'var' has a negative entry")
        var = fl.full_like(input, var)
    elif bool((var < 0).any()):
        raise ValueError("gaussian_nll_loss(): 'var' has a negative entry")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif sum(v for n, v in zip(input.size(), var.size()) if n != v) != 1:  # one dimension may be 1
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
    """target (log(target) - input): the input holds logarithms.

    reduction "batchmean": the sum divided by the batch size.
    """
    if size_average is not None or reduce is not None:
        number = _Reduction.legacy_get_enum(size_average, reduce)
    else:
        if reduction == "mean":
            warnings.warn("kl_div(): reduction='mean' is the mean over all elements. The divergence by its "
                          "definition, one for each sample, has the mean reduction='batchmean'.",
                          stacklevel=2)
        number = _Reduction.get_enum("sum" if reduction == "batchmean" else reduction)
    loss = fl.kl_div(input, target, number, log_target=log_target)
    return loss / input.size(0) if reduction == "batchmean" and input.dim() != 0 else loss


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-(target log(input) + (1 - target) log(1 - input)), logarithms not below -100."""
    number = _Reduction.of(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError("binary_cross_entropy(): 'target' must be of the input's size "
                         f"{input.size()}, got {target.size()}")
    if weight is not None:
        weight = weight.expand(fl.broadcast_shapes(target.size(), weight.size()))
    return fl.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None,
                                     reduction="mean", pos_weight=None):
    """binary_cross_entropy(sigmoid(input), target), without overflow.

    pos_weight multiplies what target marks.
    """
    number = _Reduction.of(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError("binary_cross_entropy_with_logits(): 'target' must be of the input's size "
                         f"{input.size()}, got {target.size()}")
    return fl.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """|input - target|."""
    reduction = _Reduction.named(reduction, size_average, reduce)
    _warn_if_broadcast(input, target)
    return _weighted(lambda number: fl.l1_loss(input, target, number), weight, reduction)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """(input - target)^2."""
    reduction = _Reduction.named(reduction, size_average, reduce)
    _warn_if_broadcast(input, target)
    return _weighted(lambda number: fl.mse_loss(input, target, number), weight, reduction)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """d^2 / (2 beta) where d = |input - target| is less than beta, d - beta / 2 elsewhere."""
    _warn_if_broadcast(input, target)
    number = _Reduction.of(reduction, size_average, reduce)
    return fl.l1_loss(input, target, number) if beta == 0 else fl.smooth_l1_loss(input, target, number, beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """d^2 / 2 where d = |input - target| is at most delta, delta (d - delta / 2) elsewhere."""
    _warn_if_broadcast(input, target)
    return _weighted(lambda number: fl.huber_loss(input, target, number, delta), weight, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + e^(-target input)), target being 1 or -1."""
    return fl.soft_margin_loss(input, target, _Reduction.of(reduction, size_average, reduce))


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target (input1 - input2) + margin)."""
    number = _Reduction.of(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError("margin_ranking_loss(): 'input1', 'input2' and 'target' must have equally "
                           f"many dimensions, got {input1.size()}, {input2.size()} and {target.size()}")
    return fl.margin_ranking_loss(input1, input2, target, margin, number)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """The input where target is 1, max(0, margin - input) where it is -1."""
    return fl.hinge_embedding_loss(input, target, margin, _Reduction.of(reduction, size_average, reduce))


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    number = _Reduction.of(reduction, size_average, reduce)
    return fl.cosine_embedding_loss(input1, input2, target, margin, number)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None,
                      reduction="mean"):
    """Mean over the other classes of max(0, margin - input[target] + input[class])^p.

    weight: what the loss of each target class is multiplied by.
    """
    number = _Reduction.of(reduction, size_average, reduce)
    if p != 1 and p != 2:
        raise ValueError(f"multi_margin_loss(): 'p' must be 1 or 2, got {p}")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return fl.multi_margin_loss(input, target, p, margin, weight, number)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Sum of max(0, 1 - input[label] + input[class]) over labels and other classes, by the classes' number.

    A row of target lists the labels and ends at the first -1.
    """
    return fl.multilabel_margin_loss(input, target, _Reduction.of(reduction, size_average, reduce))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over the classes of the binary cross entropy of sigmoid(input)."""
    reduction = _Reduction.named(reduction, size_average, reduce)
    loss = -(target * fl.log_sigmoid(input) + (1 - target) * fl.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _Reduction.reduced(loss.sum(dim=-1) / input.size(-1), reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None,
                        reduce=None, reduction="mean"):
    """max(0, |anchor - positive| - |anchor - negative| + margin), in the norm p along the last dimension."""
    number = _Reduction.of(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"triplet_margin_loss(): 'margin' must be greater than 0, got {margin}")
    return fl.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0,
                                      swap=False, reduction="mean"):
    """triplet_margin_loss with any distance function of two tensors."""
    distance = distance_function or fl.pairwise_distance
    if margin <= 0:
        raise ValueError("triplet_margin_with_distance_loss(): 'margin' must be greater than 0, "
                         f"got {margin}")
    _Reduction.get_enum(reduction)  # raises before the distances are computed
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("triplet_margin_with_distance_loss(): 'anchor', 'positive' and 'negative' must "
                           "have equally many dimensions, "
                           f"got {anchor.ndim}, {positive.ndim} and {negative.ndim}")
    to_positive, to_negative = distance(anchor, positive), distance(anchor, negative)
    if swap:
        to_negative = fl.minimum(to_negative, distance(positive, negative))
    return _Reduction.reduced(fl.clamp_min(margin + to_positive - to_negative, 0), reduction)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
             zero_infinity=False):
    """Connectionist temporal classification: the alignments of targets with the input.

    The loss is minus the logarithm of their total probability. log_probs: (time, batch, classes) or
    (time, classes). zero_infinity: impossible alignments cost nothing.
    """
    number = _Reduction.get_enum(reduction)
    return fl.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)
