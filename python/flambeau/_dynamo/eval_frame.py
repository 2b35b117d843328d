"""What torch.compile makes of a module in PyTorch."""
from ..nn import Module


class OptimizedModule(Module):
    """No object is one: compile(module) gives a CompiledFunction, as for any function."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch._dynamo.OptimizedModule is not supported: call "
                                  "flambeau.compile(module)")
