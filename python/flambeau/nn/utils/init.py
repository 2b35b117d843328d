"""Modules without first values."""
import inspect

from flambeau.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """The module module_cls(*args, **kwargs) with parameters whose elements are not initialised."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(f"skip_init(): {module_cls.__name__} must take an argument 'device'")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
