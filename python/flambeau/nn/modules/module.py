"""Module: parameters, buffers and submodules under one roof."""
import itertools
from collections import OrderedDict

import flambeau as fl
from flambeau import Tensor
from flambeau.nn.modules import _hooks
from flambeau.nn.modules._hooks import *  # noqa: F403 (the registrations for all modules)
from flambeau.nn.modules._hooks import _Hooks
from flambeau.nn.modules._state import _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys, _State  # noqa: F401
from flambeau.nn.parameter import Buffer, Parameter, is_lazy

__all__ = ["Module", *_hooks.__all__]


def _addindent(text, spaces):
    """Every line but the first moved to the right."""
    return text.replace("\n", "\n" + " " * spaces)


def _forward_unimplemented(self, *input):
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


def _type_name(value):
    return f"{type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")


# What a new module starts with; __setstate__ fills in what an old pickle lacks.
_FRESH = {
    "training": lambda: True, "_parameters": dict, "_buffers": dict, "_non_persistent_buffers_set": set,
    "_backward_pre_hooks": OrderedDict, "_backward_hooks": OrderedDict,
    "_is_full_backward_hook": lambda: None, "_forward_hooks": OrderedDict,
    "_forward_hooks_with_kwargs": OrderedDict, "_forward_hooks_always_called": OrderedDict,
    "_forward_pre_hooks": OrderedDict, "_forward_pre_hooks_with_kwargs": OrderedDict,
    "_state_dict_hooks": OrderedDict, "_state_dict_pre_hooks": OrderedDict,
    "_load_state_dict_pre_hooks": OrderedDict, "_load_state_dict_post_hooks": OrderedDict, "_modules": dict,
}


class Module(_Hooks, _State):
    """A part of a model. A subclass makes parameters and submodules in __init__, and computes in forward.

    Attributes that are parameters, buffers or modules are registered: parameters(), to(), state_dict() find
    them, here and in all submodules.
    """

    dump_patches = False
    training: bool
    call_super_init = False
    _compiled_call_impl = None

    def __init__(self, *args, **kwargs):
        if kwargs and not self.call_super_init:
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                            f"'{next(iter(kwargs))}'")
        if args and not self.call_super_init:
            raise TypeError(f"{type(self).__name__}.__init__() takes no arguments, not {len(args)}")
        own = self.__dict__
        for name, make in _FRESH.items():
            own[name] = make()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward = _forward_unimplemented

    # --- registration ---
    def register_buffer(self, name, tensor, persistent=True):
        """Makes a tensor (or None) part of the module without being a parameter, as running means are.

        persistent: it belongs to state_dict().
        """
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"buffer '{name}' has to be a Tensor or None, not '{_type_name(tensor)}'")
        tensor = _after_hooks(_hooks._global_buffer_registration_hooks, self, name, tensor)
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent
         else self._non_persistent_buffers_set.add)(name)

    def register_parameter(self, name, param):
        """Makes a Parameter (or None) part of the module."""
        self._check_name(name, "parameter", self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"parameter '{name}' has to be an nn.Parameter or None, not "
                            f"'{_type_name(param)}'")
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"parameter '{name}' has to be a leaf, not the result of a computation: keep "
                             f"what it is computed from as the parameter and compute '{name}' in forward().")
        self._parameters[name] = _after_hooks(_hooks._global_parameter_registration_hooks, self, name, param)

    def add_module(self, name, module):
        """Makes another module (or None) part of this one."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        self._check_name(name, "module", self._modules)
        self._modules[name] = _after_hooks(_hooks._global_module_registration_hooks, self, name, module)

    register_module = add_module

    def _check_name(self, name, kind, registered):
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
        if hasattr(self, name) and name not in registered:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    # --- attributes ---
    def __getattr__(self, name):
        own = self.__dict__
        for registry in ("_parameters", "_buffers", "_modules"):
            if registry in own and name in own[registry]:
                return own[registry][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        own = self.__dict__
        parameters, modules, buffers = own.get("_parameters"), own.get("_modules"), own.get("_buffers")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, own, buffers, modules, self._non_persistent_buffers_set)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(f"parameter '{name}' can become an nn.Parameter or None, not "
                                f"'{_type_name(value)}'")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, own, parameters, buffers, self._non_persistent_buffers_set)
            modules[name] = _after_hooks(_hooks._global_module_registration_hooks, self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(f"child module '{name}' can become an nn.Module or None, not "
                                f"'{_type_name(value)}'")
            modules[name] = _after_hooks(_hooks._global_module_registration_hooks, self, name, value)
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            self._set_buffer(name, value, own, buffers)
        else:
            object.__setattr__(self, name, value)

    def _set_buffer(self, name, value, own, buffers):
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"buffer '{name}' can become an nn.Buffer, a Tensor or None, not "
                            f"'{_type_name(value)}'")
        if isinstance(value, Buffer) and name not in (buffers or ()):
            self._forget(name, own, self._parameters, self._modules)
            self.register_buffer(name, value, value.persistent)
            return
        buffers[name] = _after_hooks(_hooks._global_buffer_registration_hooks, self, name, value)

    @staticmethod
    def _forget(name, *registries):
        for registry in registries:
            if registry is not None and name in registry:
                registry.discard(name) if isinstance(registry, set) else registry.pop(name)

    def __delattr__(self, name):
        for registry in (self._parameters, self._buffers, self._modules):
            if name in registry:
                del registry[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = itertools.chain(dir(type(self)), self.__dict__, self._parameters, self._modules,
                                self._buffers)
        return sorted({name for name in names if not name[:1].isdigit()})

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name, make in _FRESH.items():
            if name not in self.__dict__:
                self.__dict__[name] = make()

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k != "_compiled_call_impl"}

    # --- iteration ---
    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self):
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        for _, module in self.named_children():
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """This module and all below it; each once unless remove_duplicate is False."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name,
                                                remove_duplicate)

    def modules(self, remove_duplicate=True):
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def get_submodule(self, target):
        """The module at a dotted path."""
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Puts a module at a dotted path. strict: only where there is one."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target):
        """The parameter at a dotted path."""
        return self._member(target, lambda m, value, name: isinstance(value, Parameter), "an nn.Parameter")

    def get_buffer(self, target):
        """The buffer at a dotted path."""
        return self._member(target, lambda m, value, name: name in m._buffers, "a buffer")

    def _member(self, target, is_right, kind):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        value = getattr(module, name)
        if not is_right(module, value, name):
            raise AttributeError(f"`{name}` is not {kind}")
        return value

    # --- conversion ---
    def _apply(self, fn, recurse=True):
        """Replaces every parameter and buffer by fn of it; parameters stay the same objects if they can."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._parameters[name] = _converted(parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self, fn):
        """Calls fn(module) for every module below and then for this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args, **kwargs):
        """to(device), to(dtype), to(tensor), to(memory_format=...): moves; converts floating and complex."""
        device, dtype, non_blocking, memory_format = _target(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"Module.to(): 'dtype' has to be floating point or complex, not {dtype}")

        def convert(t):
            how = {} if memory_format is None or t.dim() not in (4, 5) else {"memory_format": memory_format}
            to_dtype = dtype if t.is_floating_point() or t.is_complex() else None
            to_device = device if device is not None else t.device
            return t.to(to_device, to_dtype or t.dtype, non_blocking, **how)

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Moves to a device without copying: the elements are not initialised."""
        return self._apply(lambda t: fl.empty_like(t, device=device), recurse=recurse)

    def cpu(self):
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        return self._apply(lambda t: t.cuda(device))

    def type(self, dst_type):
        return self._apply(lambda t: t.type(dst_type))

    def _floating(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self):
        return self._floating(fl.float32)

    def double(self):
        return self._floating(fl.float64)

    def half(self):
        return self._floating(fl.float16)

    def bfloat16(self):
        return self._floating(fl.bfloat16)

    def share_memory(self):
        return self._apply(lambda t: t.share_memory_())

    # --- modes ---
    def train(self, mode=True):
        """Training mode for this module and all below it: dropout drops, batch norm uses the batch."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Takes the gradients away, or fills them with zeros."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                if parameter.grad.grad_fn is not None:
                    parameter.grad.detach_()
                else:
                    parameter.grad.requires_grad_(False)
                parameter.grad.zero_()

    def compile(self, *args, **kwargs):
        """Calls of the module run compiled from now on; the arguments are those of flambeau.compile."""
        self._compiled_call_impl = fl.compile(self._call_impl, *args, **kwargs)

    # --- description ---
    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """To override: what repr() says of the module itself."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        body = lines + children
        if not body:
            return f"{self._get_name()}()"
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        return f"{self._get_name()}(\n  " + "\n  ".join(body) + "\n)"


def _after_hooks(hooks, module, name, value):
    for hook in hooks.values():
        result = hook(module, name, value)
        value = value if result is None else result
    return value


def _converted(parameter, fn):
    """fn of a parameter and of its gradient, in the same object unless it comes or goes to meta."""
    with fl.no_grad():
        new = fn(parameter)
    in_place = is_lazy(parameter) or (type(new) in (Tensor, type(parameter)) and
                                      new.is_meta == parameter.is_meta)
    grad = parameter.grad
    if in_place:
        if new is not parameter:
            parameter.grad = None
            parameter.data = new
        result = parameter
    else:
        result = type(parameter)(new, parameter.requires_grad)
    if grad is not None:
        with fl.no_grad():
            new_grad = fn(grad)
        result.grad = new_grad.requires_grad_(grad.requires_grad)
    return result


def _target(*args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None, tensor=None):
    """The arguments of to(): a device, a dtype or both, or a tensor that has them."""
    args = list(args)
    if tensor is None and args and isinstance(args[0], Tensor):
        tensor = args.pop(0)
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    for what in (0, 1) if tensor is None else ():
        if not args:
            break
        if isinstance(args[0], fl.dtype):
            dtype = args.pop(0)
        elif what == 0 and (args[0] is None or isinstance(args[0], (str, int, fl.device))
                            and args[0] is not True):
            device = args.pop(0)
        elif args[0] is None:
            args.pop(0)
    if args:
        non_blocking = args.pop(0)
    if device is not None and not isinstance(device, fl.device):
        device = fl.device(device)
    return device, dtype, non_blocking, memory_format
