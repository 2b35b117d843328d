"""Functions of the torch namespace, where PyTorch has them: torch.functional."""
import flambeau

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
           "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm",
           "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique", "unique_consecutive",
           "unravel_index"]

globals().update({name: getattr(flambeau, name) for name in __all__})
