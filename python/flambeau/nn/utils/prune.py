"""Weights set to 0 and kept there: name becomes name_orig times name_mask."""
import numbers
from abc import ABC, abstractmethod

import flambeau as fl

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity",
    "is_pruned", "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]


def _check_amount(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"'amount' must be an int or a float, got {amount!r}")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and amount > 1):
        raise ValueError(f"'amount' must be a count of at least 0, or a share from 0.0 to 1.0; got {amount}")


def _count(amount, size):
    """How many of `size`: a number, or a share."""
    count = amount if isinstance(amount, numbers.Integral) else round(amount * size)
    if count > size:
        raise ValueError(f"'amount' is {amount}, but there are only {size} to prune")
    return count


class BasePruningMethod(ABC):
    """A way to choose what becomes 0. compute_mask(t, default_mask) gives the mask; 0 means gone.

    PRUNING_TYPE: "unstructured", "structured" or "global": to what of an already pruned tensor it is applied.
    """

    _tensor_name = None
    PRUNING_TYPE = "unstructured"

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask of a tensor, given what is masked already."""

    def apply_mask(self, module):
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, original = (getattr(module, self._tensor_name + end) for end in ("_mask", "_orig"))
        return mask.to(original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes a parameter; on one that is pruned already, what is left."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        earlier = [(key, hook) for key, hook in module._forward_pre_hooks.items()
                   if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
        if len(earlier) > 1:
            raise AssertionError(f"'{name}' of module {module} has several pruning methods; combine them in "
                                 "one PruningContainer")
        if earlier:
            key, hook = earlier[0]
            del module._forward_pre_hooks[key]
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name + "_orig") if earlier else module._parameters[name]
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise AssertionError(f"'importance_scores' must be of the shape {original.shape} of '{name}' of "
                                 f"{module}, got {importance_scores.shape}")
        scores = importance_scores if importance_scores is not None else original.detach()
        default = getattr(module, name + "_mask").clone() if earlier else fl.ones_like(original)
        default = default.detach()
        if not earlier:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        try:
            mask = method.compute_mask(scores, default)
        except Exception:
            if not earlier:
                module.register_parameter(name, original)
                del module._parameters[name + "_orig"]
            raise
        if earlier:
            setattr(module, name + "_mask", mask)
        else:
            module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """The tensor with what is chosen set to 0."""
        scores = t if importance_scores is None else importance_scores
        default_mask = fl.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask)

    def remove(self, module):
        """Makes the pruned tensor the parameter."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"module {module} is not pruned, so there is nothing to remove")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = weight.data
        del module._parameters[name + "_orig"], module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other, on one tensor."""

    def __init__(self, *args):
        self._pruning_methods = ()
        methods = args[0] if len(args) == 1 and not isinstance(args[0], BasePruningMethod) else args
        for method in methods:
            if not self._pruning_methods:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(f"{self} prunes '{self._tensor_name}', so a method for '{method._tensor_name}' "
                             "cannot join it")
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index):
        return self._pruning_methods[index]

    def compute_mask(self, t, default_mask):
        """The last method's mask, on what is left."""
        method, mask = self._pruning_methods[-1], default_mask.to(t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            others = [d for d in range(t.dim()) if d != dim]
            kept = mask.sum(dim=others) != 0 if others else mask != 0
            left = (slice(None),) * dim + (kept,)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        new = mask.clone()
        new[left] = method.compute_mask(t[left], default_mask=mask[left]).to(new.dtype)
        return new


class Identity(BasePruningMethod):
    """Nothing is pruned; the names name_orig and name_mask come to be."""

    def compute_mask(self, t, default_mask):
        return default_mask


class _Amount(BasePruningMethod):
    def __init__(self, amount):
        _check_amount(amount)
        self.amount = amount


class RandomUnstructured(_Amount):
    """Random elements."""

    def compute_mask(self, t, default_mask):
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[fl.randperm(t.numel())[:count]] = 0
        return mask


class L1Unstructured(_Amount):
    """The elements that are nearest to 0."""

    def compute_mask(self, t, default_mask):
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[fl.topk(t.abs().reshape(-1), count, largest=False).indices] = 0
        return mask


class _Structured(_Amount):
    """Whole slices along a dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t):
        raise NotImplementedError

    def compute_mask(self, t, default_mask):
        if t.dim() < 2:
            raise ValueError("structured pruning needs at least 2 dimensions, got a tensor of shape "
                             f"{t.shape}")
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(f"'dim' is {self.dim}, but the tensor is of shape {t.shape}")
        count = _count(self.amount, t.size(self.dim))
        if not count:
            return default_mask
        gone = fl.topk(self._scores(t), count, largest=False).indices
        return default_mask.index_fill(self.dim, gone, 0)


class RandomStructured(_Structured):
    """Random slices along dim."""

    def _scores(self, t):
        return fl.rand(t.size(self.dim))


class LnStructured(_Structured):
    """The slices along dim whose norm n is least."""

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t):
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return fl.linalg_vector_norm(t, self.n, others)


class CustomFromMask(BasePruningMethod):
    """A mask that the user gives."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError("default_mask and mask must have the same shape")
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module, name):
    """Gives a parameter the names of pruning without pruning it."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Sets `amount` (a number, or a share) random elements to 0."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Sets the `amount` elements that are nearest to 0 to 0."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Sets `amount` random slices along dim to 0."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Sets the `amount` slices along dim with the least norm n to 0."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Sets to 0 what the mask says."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes several (module, name) as if they were one tensor."""
    if not isinstance(parameters, (list, tuple)):
        raise TypeError("global_unstructured(): 'parameters' must be a list of (module, name), got "
                        f"{type(parameters).__name__}")
    importance_scores = importance_scores or {}
    scores = [importance_scores.get((m, n), getattr(m, n)).detach().reshape(-1) for m, n in parameters]
    masks = [getattr(m, n + "_mask", fl.ones_like(getattr(m, n))).detach().reshape(-1) for m, n in parameters]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError("'pruning_method' must have the PRUNING_TYPE 'unstructured'; "
                        f"{pruning_method} has {method.PRUNING_TYPE!r}")
    container = PruningContainer()
    container._tensor_name = method._tensor_name = "temp"
    container.add_pruning_method(method)
    mask = container.compute_mask(fl.cat(scores), fl.cat(masks))
    for (module, name), part in zip(parameters, mask.split([s.numel() for s in scores])):
        custom_from_mask(module, name, part.view(getattr(module, name).shape))


def remove(module, name):
    """Makes the pruned tensor the parameter."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"'{name}' of module {module} is not pruned, so there is nothing to remove")


def is_pruned(module):
    """Whether anything in the module is pruned."""
    hooks = (hook for m in module.modules() for hook in m._forward_pre_hooks.values())
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)
