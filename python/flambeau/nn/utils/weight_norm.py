"""Weight normalisation by a hook: the older form of parametrizations.weight_norm."""
import warnings

import flambeau as fl
from flambeau.nn.parameter import Parameter, is_lazy

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_except_dim(v, dim):
    """The norm over all dimensions but one (-1: over all), of size 1 in those."""
    if dim == -1:
        return v.norm()
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return fl.linalg_vector_norm(v, 2, others, keepdim=True)


class WeightNorm:
    """Before each forward: weight = g v / |v|, g and v being the parameters."""

    def __init__(self, name, dim):
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module):
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except_dim(v, self.dim))

    @staticmethod
    def apply(module, name, dim):
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"weight_norm(): '{name}' already has a weight norm")
        norm = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(f"weight_norm(): '{name}' has no values yet; call the lazy module once before")
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, norm.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, norm.compute_weight(module))
        module.register_forward_pre_hook(norm)
        return norm

    def remove(self, module):
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Divides a weight into length and direction: name_g and name_v are trained instead of name."""
    warnings.warn("nn.utils.weight_norm() is deprecated; call nn.utils.parametrizations.weight_norm().",
                  FutureWarning, stacklevel=2)
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name="weight"):
    """Makes the weight one parameter again."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"'{name}' of {module} has no weight norm")
