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


def legacy_get_string(size_average, reduce, emit_warning=True, stacklevel=3):
    """The reduction that the old arguments size_average and reduce stood for."""
    reduce = True if reduce is None else reduce
    if not reduce:
        reduction = "none"
    else:
        reduction = "mean" if size_average is None or size_average else "sum"
    if emit_warning:
        warnings.warn(f"'size_average' and 'reduce' are the old form; write reduction='{reduction}'.",
                      stacklevel=stacklevel)
    return reduction


def legacy_get_enum(size_average, reduce, emit_warning=True):
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def named(reduction, size_average=None, reduce=None, stacklevel=4):
    """The reduction that a loss's three arguments ask for."""
    if size_average is None and reduce is None:
        return reduction
    return legacy_get_string(size_average, reduce, stacklevel=stacklevel)


def of(reduction, size_average=None, reduce=None):
    """The same as the number that operators take."""
    return get_enum(named(reduction, size_average, reduce, stacklevel=5))


def reduced(losses, reduction):
    """The losses themselves, their mean or their sum."""
    number = get_enum(reduction)
    return losses if number == 0 else losses.mean() if number == 1 else losses.sum()
