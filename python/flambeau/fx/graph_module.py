"""GraphModule: a class that isinstance() may ask for."""
from ..nn import Module

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class GraphModule(Module):
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch.fx.GraphModule is not supported: Flambeau's graphs are not modules in Python")


class _CodeOnlyModule(Module):
    pass


def _copy_attr(from_module, to_module, target):
    """Copies what a dotted name means from one module to another."""
    *path, name = target.split(".")
    for part in path:
        inner = getattr(from_module, part)
        if inner is getattr(to_module, part, None):
            return
        if not hasattr(to_module, part):
            setattr(to_module, part, Module())
        from_module, to_module = inner, getattr(to_module, part)
    setattr(to_module, name, getattr(from_module, name))
