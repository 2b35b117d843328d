"""Types for annotations, where TorchScript has them."""
from typing import Any, Dict, List, Optional, Tuple, Union

from .._C import Tensor

__all__ = ["Any", "Dict", "List", "Optional", "Tensor", "Tuple", "Union"]


class _BroadcastingList:
    """One number that stands for as many as are needed."""

    def __getitem__(self, types):
        return List[types]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = _BroadcastingList()
