"""How the losses of a batch become one number."""
import warnings


def get_enum(reduction):
    """The number that operators take for "none", "mean" or "sum"."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is an old name; write reduction='mean'.", stacklevel=3)
        reduction = "mean"
    numbers = {"none": 0, "mean": 1, "sum": 2}
    if reduction not in numbers:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return numbers[reduction]


def legacy_get_string(size_average, reduce, emit_warning=True):
    """The reduction that the old arguments size_average and reduce stood for."""
    reduce = True if reduce is None else reduce
    if not reduce:
        reduction = "none"
    else:
        reduction = "mean" if size_average is None or size_average else "sum"
    if emit_warning:
        warnings.warn(f"'size_average' and 'reduce' are the old form; write reduction='{reduction}'.",
                      stacklevel=3)
    return reduction


def legacy_get_enum(size_average, reduce, emit_warning=True):
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def of(reduction, size_average=None, reduce=None):
    """The number for a loss's three arguments."""
    if size_average is not None or reduce is not None:
        return legacy_get_enum(size_average, reduce)
    return get_enum(reduction)


def reduced(losses, reduction):
    """The losses themselves, their mean or their sum."""
    number = get_enum(reduction)
    return losses if number == 0 else losses.mean() if number == 1 else losses.sum()
