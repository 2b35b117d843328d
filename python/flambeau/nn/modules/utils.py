"""PyTorch's name for the tuples of layers' arguments."""
from flambeau.nn.modules.tuples import (  # noqa: F401
    _ntuple, _pair, _quadruple, _reverse_repeat_tuple, _single, _triple,
)
