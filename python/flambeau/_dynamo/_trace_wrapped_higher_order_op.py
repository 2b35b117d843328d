"""Where transformers looks for it."""
from ..overrides import TorchFunctionMode


class TransformGetItemToIndex(TorchFunctionMode):
    """A scope in which x[tensor] indexes by the tensor: it always does here."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
