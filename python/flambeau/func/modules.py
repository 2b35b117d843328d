"""Modules as functions of their parameters."""
from .. import _C
from ..nn import Module
from ..nn.modules.batchnorm import _BatchNorm

__all__ = ["replace_all_batch_norm_modules_", "stack_module_state"]


def stack_module_state(models):
    """(parameters, buffers) of several modules of one class: dicts of tensors stacked along a new first
    dimension, for vmap() over functional_call(). Parameters are leaves that require grad as the modules' do.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state(): expected one module or more, got none")
    if not all(isinstance(m, Module) for m in models):
        raise RuntimeError("stack_module_state(): expected all models to be instances of Module")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError("stack_module_state(): expected all models to be in one mode, training or "
                           "evaluation")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state(): expected all models to be of one class")

    def stacked(named):
        found = [dict(named(m)) for m in models]
        return {name: _leaf([tensors[name] for tensors in found]) for name in found[0]}

    return stacked(lambda m: m.named_parameters()), stacked(lambda m: m.named_buffers())


def _leaf(tensors):
    return _C.stack([t.detach() for t in tensors]).requires_grad_(tensors[0].requires_grad)


def replace_all_batch_norm_modules_(root):
    """Makes the batch norms of a module keep no running statistics, which a call of vmap() would change."""
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.track_running_stats = False
            module.running_mean = module.running_var = module.num_batches_tracked = None
    return root
