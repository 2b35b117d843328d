"""What compile() makes of a module."""
from ..nn import Module


class OptimizedModule(Module):
    """A module whose forward is compiled: `_orig_mod` is the module that was given."""

    def __init__(self, mod, compile_forward):
        super().__init__()
        self._orig_mod = mod
        self._compiled = compile_forward(mod)

    def forward(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules["_orig_mod"], name)
