"""Dimensions joined and divided."""
from flambeau.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins the dimensions from start_dim to end_dim."""

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Divides a dimension into several; one size may be -1."""

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if isinstance(dim, str):
            raise TypeError("Unflatten: dimensions by name are not supported, expected an int as dim")
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError("'unflattened_size' has to be a tuple of int, not "
                            f"{type(unflattened_size).__name__}")
        for k, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(f"'unflattened_size' has to hold int only; element {k} is "
                                f"{type(size).__name__}")
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
