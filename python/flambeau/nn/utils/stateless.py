"""Modules called with other parameters than their own."""
import contextlib

import flambeau as fl
from flambeau.nn.modules.module import Module

__all__ = ["functional_call"]


def _ties(module):
    """Names of one tensor: {name: all names of it}."""
    names = {}
    for name, tensor in [*module.named_parameters(remove_duplicate=False),
                         *module.named_buffers(remove_duplicate=False)]:
        names.setdefault(id(tensor), []).append(name)
    return {name: group for group in names.values() for name in group}


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False,
                          stack_weights=False):
    """Puts tensors in the places of the module's own while inside."""
    given = dict(parameters_and_buffers)
    if tie_weights:
        ties = _ties(module)
        for name, tensor in list(given.items()):
            for other in ties.get(name, ()):
                if other in given and given[other] is not tensor:
                    raise ValueError(f"functional_call(): {sorted(ties[name])} are one tensor in the module, "
                                     "but get different values; pass tie_weights=False to allow it")
                given[other] = tensor
    if strict:
        known = {name for name, _ in module.named_parameters(remove_duplicate=False)}
        known |= {name for name, _ in module.named_buffers(remove_duplicate=False)}
        missing, unexpected = sorted(known - set(given)), sorted(set(given) - known)
        if missing or unexpected:
            parts = [f"{title} key(s): {', '.join(keys)}." for title, keys in
                     (("Missing", missing), ("Unexpected", unexpected)) if keys]
            raise RuntimeError(f"functional_call(): the names do not fit {module._get_name()}:\n\t" +
                               "\n\t".join(parts))
    own = []
    try:
        for name, tensor in given.items():
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            registry = next((r for r in (owner._parameters, owner._buffers) if last in r), None)
            if registry is None:
                if hasattr(owner, last) and isinstance(getattr(owner, last), fl.Tensor):
                    registry = owner.__dict__
                else:
                    raise AttributeError(f"{type(owner).__name__} has no attribute `{last}`")
            own.append((registry, last, registry.get(last)))
            registry[last] = tensor
        yield
    finally:
        for registry, last, tensor in reversed(own):
            registry[last] = tensor


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True,
                    strict=False):
    """module(*args, **kwargs) with these tensors, by name, in the places of its parameters and buffers.

    What has the same tensor gets the same new one if tie_weights. strict: all names must be there.
    """
    if not isinstance(module, Module):
        raise TypeError(f"expected a Module, got {type(module).__name__}")
    if isinstance(parameters_and_buffers, (tuple, list)):
        merged = {}
        for part in parameters_and_buffers:
            repeated = merged.keys() & part.keys()
            if repeated:
                raise ValueError(f"functional_call(): {sorted(repeated)} are in more than one dictionary")
            merged.update(part)
        parameters_and_buffers = merged
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))
