"""Spectral normalisation by a hook: the older form of parametrizations.spectral_norm."""
import flambeau as fl
from flambeau.nn import functional as F
from flambeau.nn.modules.conv import _ConvTransposeNd
from flambeau.nn.parameter import Parameter, is_lazy

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """Before each forward: weight = weight_orig / sigma, its largest singular value, by power iteration."""

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError("spectral_norm(): 'n_power_iterations' must be positive, "
                             f"got {n_power_iterations}")
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def reshape_weight_to_matrix(self, weight):
        return weight.movedim((self.dim,), (0,)).reshape(weight.size(self.dim), -1)

    def compute_weight(self, module, do_power_iteration):
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with fl.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(fl.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(fl.mv(matrix, v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()
        return weight / fl.dot(u, fl.mv(matrix, v))

    def remove(self, module):
        with fl.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for end in ("_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"spectral_norm(): '{name}' already has a spectral norm")
        norm = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"spectral_norm(): the parameter '{name}' is None")
        if is_lazy(weight):
            raise ValueError(f"spectral_norm(): '{name}' has no values yet; call the lazy module once before")
        with fl.no_grad():
            height, width = norm.reshape_weight_to_matrix(weight).shape
            u = F.normalize(weight.new_empty((height,)).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty((width,)).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(norm)
        return norm


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a weight by its largest singular value before each forward."""
    if dim is None:
        dim = 1 if isinstance(module, _ConvTransposeNd) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Makes the normalised weight the parameter."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"'{name}' of {module} has no spectral norm")
