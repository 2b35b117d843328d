"""How tensors are printed."""
from ._C import Tensor

_DEFAULT = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_PROFILES = {
    "default": _DEFAULT,
    "short": {**_DEFAULT, "precision": 2, "edgeitems": 2},
    "full": {**_DEFAULT, "threshold": float("inf")},
}
_options = _DEFAULT


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None,
                     sci_mode=None):
    """Digits after the point, the number of elements that is too many, elements shown at each end, columns of
    a line.

    profile ("default", "short", "full") sets all of these first. sci_mode: True or False; None lets the
    values decide.
    """
    global _options
    base = _options if profile is None else _PROFILES[profile]
    given = dict(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth)
    _options = {**base, "sci_mode": sci_mode, **{k: v for k, v in given.items() if v is not None}}


def get_printoptions():
    return dict(_options)


class printoptions:
    """set_printoptions() for the length of a with statement."""

    def __init__(self, **options):
        self._given = options

    def __enter__(self):
        self._before = _options
        set_printoptions(**self._given)

    def __exit__(self, *error):
        global _options
        _options = self._before


def tensor_text(tensor):
    """tensor([1., 2.], grad_fn=<MulBackward0>), as repr() gives it."""
    o = _options
    threshold = 2**62 if o["threshold"] == float("inf") else int(o["threshold"])
    prefix = "tensor" if type(tensor) is Tensor else type(tensor).__name__
    return tensor._text(o["precision"], threshold, o["edgeitems"], o["linewidth"], o["sci_mode"], prefix)
