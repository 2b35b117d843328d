"""Parameters as functions of other parameters."""
import contextlib
import copy

import flambeau as fl
from flambeau.nn.modules.container import ModuleDict, ModuleList
from flambeau.nn.parameter import Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization",
           "remove_parametrizations", "transfer_parametrizations_and_params", "type_before_parametrizations"]

_cache_depth = 0
_cache = {}


@contextlib.contextmanager
def cached():
    """Inside, every parametrized tensor is computed once."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _register(module, name, value):
    """As a parameter or a buffer."""
    (module.register_parameter if isinstance(value, Parameter) else module.register_buffer)(name, value)


def _in_place_of(original, new):
    """The tensor to keep: the original object with the new values where the two have one dtype."""
    if not isinstance(new, fl.Tensor):
        raise ValueError(f"'right_inverse' must give a tensor or a list of tensors, got {type(new).__name__}")
    if original.dtype != new.dtype:
        raise ValueError(f"'right_inverse' must keep the dtype {original.dtype} of the original tensor, "
                         f"got {new.dtype}")
    with fl.no_grad():
        original.data = new.detach()
    return original


def _check_kept(value, dtype, shape, what):
    """Unless unsafe, a parametrization gives a tensor of the dtype and shape that there were."""
    if not isinstance(value, fl.Tensor):
        raise ValueError(f"the parametrization must give a tensor, got {type(value).__name__}.")
    for fact, before in (("dtype", dtype), ("shape", shape)):
        now = getattr(value, fact)
        if now != before:
            raise ValueError(f"the parametrization may not change the {fact} of {what} (pass unsafe=True to "
                             f"allow it): it was {before}, got {now}")


class ParametrizationList(ModuleList):
    """The functions of one tensor, in order, and what they start from.

    That is original, or original0, original1, ...
    """

    def __init__(self, modules, original, unsafe=False):
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with fl.no_grad():
            new = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    new = module.right_inverse(new)
        if not isinstance(new, fl.Tensor) and not isinstance(new, (tuple, list)):
            raise ValueError("'right_inverse' must give a tensor or a list of tensors, "
                             f"got {type(new).__name__}")
        self.is_tensor = isinstance(new, fl.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            _register(self, "original", _in_place_of(original, new))
        else:
            for k, part in enumerate(new):
                if not isinstance(part, fl.Tensor):
                    raise ValueError("'right_inverse' must give a tensor or a list of tensors, got "
                                     f"{type(part).__name__} as element {k}.")
                part = Parameter(part, original.requires_grad) if isinstance(original, Parameter) else part
                _register(self, f"original{k}", part)
        if not unsafe:
            _check_kept(self(), dtype, shape, "the tensor")

    def _originals(self):
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{k}") for k in range(self.ntensors)]

    def right_inverse(self, value):
        """Sets what the functions start from so that they give a value."""
        with fl.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"{type(module).__name__} has no method right_inverse, so the "
                                       "parametrized tensor cannot be assigned to.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, fl.Tensor):
                    raise ValueError(f"'right_inverse' must give a tensor, got {type(value).__name__}")
                _in_place_of(self.original, value)
                return
            if not isinstance(value, (tuple, list)):
                raise ValueError(f"'right_inverse' must give a list of tensors, got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(f"'right_inverse' must give {self.ntensors} tensors, got {len(value)}.")
            for original, part in zip(self._originals(), value):
                _in_place_of(original, part)

    def forward(self):
        first, *rest = list(self)
        value = first(*self._originals())
        for module in rest:
            value = module(value)
        return value


def _make_class(module):
    """Gives the module a class of its own, so that it can have properties."""
    original = type(module)

    def deepcopy(self, memo):
        twin = memo.get(id(self))
        if twin is None:
            twin = self.__new__(type(self))
            memo[id(self)] = twin
            twin.__dict__ = copy.deepcopy(self.__dict__, memo)
        return twin

    def reduce(self, protocol):
        raise RuntimeError("a parametrized module cannot be pickled; save its state_dict() instead.")

    body = {"__reduce_ex__": reduce}
    if not hasattr(original, "__deepcopy__"):
        body["__deepcopy__"] = deepcopy
    module.__class__ = type(f"Parametrized{original.__name__}", (original,), body)


def _make_property(module, name):
    def compute(self):
        if not _cache_depth:
            return self.parametrizations[name]()
        key = (id(module), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def assign(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(compute, assign))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """module.tensor_name becomes parametrization(what it was), a property; several work one after the other.

    Assigning to it goes through parametrization.right_inverse if there is one.
    unsafe: shape and dtype may change.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            now = getattr(module, tensor_name)
            _check_kept(parametrization(now), now.dtype, now.shape, f"'{tensor_name}'")
            if hasattr(parametrization, "right_inverse"):
                inverse = parametrization.right_inverse(now)
                if not isinstance(inverse, fl.Tensor):
                    raise ValueError(f"'right_inverse' must give a tensor, got {type(inverse).__name__}")
        stack = module.parametrizations[tensor_name]
        stack.append(parametrization)
        stack.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        stack = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _make_class(module)
            module.parametrizations = ModuleDict()
        _make_property(module, tensor_name)
        module.parametrizations[tensor_name] = stack
    else:
        raise ValueError(f"no parameter, buffer or parametrized tensor '{tensor_name}' in module '{module}'")
    return module


def is_parametrized(module, tensor_name=None):
    """Whether the module (its tensor of that name) is parametrized."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes the tensor a plain one again.

    It has its value now, or what it started from if not leave_parametrized.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"'{tensor_name}' of module {module} is not parametrized")
    stack = module.parametrizations[tensor_name]
    if stack.is_tensor:
        original = stack.original
        if leave_parametrized:
            with fl.no_grad():
                original.data = getattr(module, tensor_name).detach()
    else:
        if not leave_parametrized:
            raise ValueError(f"'{tensor_name}' is made of several tensors, so it has no single original; use "
                             "leave_parametrized=True")
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The module's class before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Copies the parametrizations of one module (of one tensor of it) to another, with their originals."""
    if not is_parametrized(from_module):
        return to_module
    for name in [tensor_name] if tensor_name is not None else list(from_module.parametrizations):
        stack = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(stack._originals()[0]))
        for parametrization in stack:
            register_parametrization(to_module, name, copy.deepcopy(parametrization))
        target = to_module.parametrizations[name]
        for key, value in [*stack._parameters.items(), *stack._buffers.items()]:
            setattr(target, key, value)
    return to_module
