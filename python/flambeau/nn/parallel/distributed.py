"""PyTorch's place of DistributedDataParallel."""
from flambeau.nn.parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
