"""What a module keeps between runs: state_dict() and load_state_dict()."""
import warnings
from collections import OrderedDict, namedtuple

import flambeau as fl
from flambeau.nn.modules._hooks import _add
from flambeau.nn.parameter import Parameter, is_lazy

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _State:
    """The part of Module that saves and loads."""

    _version = 1  # of the format of a class's own entries, kept in state_dict()._metadata

    def get_extra_state(self):
        """To override: whatever else belongs into the state_dict."""
        raise RuntimeError("Module.get_extra_state() has no default: a subclass has to define it.")

    def set_extra_state(self, state):
        """To override: takes what get_extra_state() gave."""
        raise RuntimeError("Module.set_extra_state() has no default: a subclass has to define it.")

    def _has_own(self, method):
        return getattr(type(self), method) is not getattr(_State, method)

    # --- saving ---
    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """Parameters and persistent buffers, here and in all below, by name; detached unless keep_vars."""
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead.", FutureWarning,
                          stacklevel=2)
            destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args):])
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = dict(version=self._version)
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if not getattr(hook, "_from_public_api", False):
                destination = destination if result is None else result
            elif result is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """The entries of this module alone."""
        for name, tensor in self._own_state().items():
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if self._has_own("get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _own_state(self):
        """Parameters and persistent buffers of this module alone, None among them."""
        kept = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        return {**self._parameters, **kept}

    def register_state_dict_post_hook(self, hook):
        """hook(module, state_dict, prefix, local_metadata) -> None, after the module's entries are there."""
        hook._from_public_api = True
        return _add(hook, self._state_dict_hooks)

    def register_state_dict_pre_hook(self, hook):
        """hook(module, prefix, keep_vars) -> None, before the module's entries are made."""
        return _add(hook, self._state_dict_pre_hooks)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("This hook is registered already, with register_state_dict_post_hook; it "
                               "cannot be registered here too.")
        return _add(hook, self._state_dict_hooks)

    # --- loading ---
    def register_load_state_dict_pre_hook(self, hook):
        """Calls hook before loading, with the module and the arguments of _load_from_state_dict."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return _add(_LoadHook(hook, self if with_module else None), self._load_state_dict_pre_hooks)

    def register_load_state_dict_post_hook(self, hook):
        """hook(module, incompatible_keys) -> None, after loading; may edit its lists of names."""
        return _add(hook, self._load_state_dict_post_hooks)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies what state_dict() gave into the parameters and buffers.

        strict: names that are missing or unknown are an error.
        assign: takes the tensors themselves instead of copying.
        Returns (missing_keys, unexpected_keys).
        """
        if not hasattr(state_dict, "keys") or not hasattr(state_dict, "__getitem__"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, local, prefix=""):
            # a copy: the caller's state_dict may be loaded again without assign
            local_metadata = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
            if assign:
                local_metadata["assign_to_params_buffers"] = True
            module._load_from_state_dict(local, prefix, local_metadata, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    below = f"{prefix}{name}."
                    load(child, {k: v for k, v in local.items() if k.startswith(below)}, below)
            keys = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, keys) is not None:
                    raise AssertionError("A hook of register_load_state_dict_post_hook has to return None; "
                                         "it may edit incompatible_keys in place.")

        load(self, state_dict)
        if strict:
            for title, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    names = ", ".join(f'"{k}"' for k in keys)
                    errors.insert(0, f"{title} key(s) in state_dict: {names}. ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                               + "\n\t".join(errors))
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        """Loads the entries of this module alone; to override where old entries need a conversion."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, own in self._own_state().items():
            key = prefix + name
            if own is None:
                continue
            if key in state_dict:
                error = self._load_entry(name, own, key, state_dict[key], assign)
                error_msgs.extend([error] if error else [])
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != prefix + _EXTRA_STATE_KEY_SUFFIX:
                    path = key[len(prefix):].split(".", 1)
                    known = path[0] in self._modules if len(path) > 1 else path[0] in self._own_state()
                    if not known:
                        unexpected_keys.append(key)

    def _load_entry(self, name, own, key, given, assign):
        """Puts one tensor in its place; the error message, or None."""
        if not isinstance(given, fl.Tensor):
            return f'parameter "{key}": the checkpoint should hold a tensor, but holds {type(given)}'
        if not is_lazy(own) and own.dim() == 0 and tuple(given.shape) == (1,):
            given = given[0]  # a form of old files
        if not is_lazy(own) and given.shape != own.shape:
            return f"size mismatch for {key}: {given.shape} in the checkpoint, {own.shape} in the model."
        if not is_lazy(own) and own.device.type == "meta" and given.device.type != "meta" and not assign:
            warnings.warn(f"{key}: the model's tensor is on meta, so copying the checkpoint's into it does "
                          "nothing. assign=True would put the checkpoint's tensor in its place.")
        try:
            with fl.no_grad():
                if assign:
                    if isinstance(own, Parameter):
                        given = given if isinstance(given, Parameter) else Parameter(given)
                        given.requires_grad_(own.requires_grad)
                    setattr(self, name, given)
                else:
                    own.copy_(given)
        except Exception as error:
            return (f'parameter "{key}" ({own.size()} in the model, {given.size()} in the checkpoint) could '
                    f"not be loaded: {error.args}.")
        return None

    def _load_extra_state(self, state_dict, prefix, strict, missing_keys, unexpected_keys):
        key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._has_own("set_extra_state"):
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)


class _LoadHook:
    """A hook before loading; it gets the module first if it was registered through the public method."""

    def __init__(self, hook, module):
        self.hook, self.module = hook, module

    def __call__(self, *args):
        return self.hook(*args) if self.module is None else self.hook(self.module, *args)
