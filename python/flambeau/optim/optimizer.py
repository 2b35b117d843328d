"""Optimizer: groups of parameters, their state, and a step that changes them by their gradients."""
import functools
import warnings
from collections import OrderedDict, defaultdict
from copy import deepcopy
from itertools import chain

from .._C import Tensor
from ..utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()
_step_pre_hooks, _step_post_hooks = OrderedDict(), OrderedDict()


def _register(hooks, hook, first=False):
    """Adds a hook; what is returned takes it out again."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if first:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """Calls hook(optimizer, args, kwargs), which may return new ones, before each step of each optimizer."""
    return _register(_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Calls hook(optimizer, args, kwargs) after every step of every optimizer."""
    return _register(_step_post_hooks, hook)


def _with_hooks(step):
    """A step() that calls the hooks around it. A step that calls its base class's runs them once."""

    @functools.wraps(step)
    def hooked(self, *args, **kwargs):
        if self._inside_step:
            return step(self, *args, **kwargs)
        for hook in [*_step_pre_hooks.values(), *self._step_pre_hooks.values()]:
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError("a step pre hook must return None or (new_args, new_kwargs), got "
                                       f"{changed}")
                args, kwargs = changed
        self._inside_step = True
        try:
            result = step(self, *args, **kwargs)
        finally:
            self._inside_step = False
        for hook in [*self._step_post_hooks.values(), *_step_post_hooks.values()]:
            hook(self, args, kwargs)
        return result

    hooked.hooked = True
    return hooked


class Optimizer:
    """Base of all optimizers. A subclass gives the defaults of a group's options, and step()."""

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, Tensor):
            raise TypeError("params must be an iterable of Tensors or of dicts, not a "
                            f"{type(params).__name__}")
        if isinstance(params, (set, frozenset)):
            warnings.warn("a set of parameters has another order in each run: give the optimizer a list "
                          "instead.", FutureWarning, stacklevel=3)
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(dict(group))

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        step = cls.__dict__.get("step")
        if step is not None and not hasattr(step, "hooked"):
            cls.step = _with_hooks(step)

    def _make_hooks(self):
        self._inside_step = False
        self._step_pre_hooks, self._step_post_hooks = OrderedDict(), OrderedDict()
        self._state_dict_pre_hooks, self._state_dict_post_hooks = OrderedDict(), OrderedDict()
        self._load_pre_hooks, self._load_post_hooks = OrderedDict(), OrderedDict()

    def step(self, closure=None):
        """Changes the parameters. closure() computes the loss, with its gradients, and returns it."""
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def zero_grad(self, set_to_none=True):
        """Drops the gradients of all parameters, or fills them with zeros."""
        for p in chain.from_iterable(group["params"] for group in self.param_groups):
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
            else:
                p.grad = p.grad.detach()
                p.grad.zero_()

    # Groups.
    def add_param_group(self, param_group):
        """Adds a group: a dict with "params" and options that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        self._take_params(param_group)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"a parameter group lacks the required optimization option {name}")
            param_group.setdefault(name, default)
        self._check_params(param_group)
        self.param_groups.append(param_group)

    def _take_params(self, group):
        """The group's "params" as a list; of (name, tensor) pairs, the names go to "param_names"."""
        params = group["params"]
        if isinstance(params, (set, frozenset)):
            raise TypeError("a set of parameters has another order in each run: give the optimizer a list "
                            "instead.")
        params = [params] if isinstance(params, Tensor) else list(params)
        named = [isinstance(p, tuple) for p in params]
        if any(named):
            if not all(named):
                raise ValueError("params are with/without names mixed: name all of them or none")
            group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        group["params"] = params
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            state = "with" if "param_names" in group else "without"
            raise ValueError(f"param groups with/without names cannot be mixed: the new one is {state} "
                             "names, the optimizer's are not")

    def _check_params(self, group):
        params = group["params"]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"params must be Tensors, but there is a {type(p).__name__}")
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(p) for p in params}) != len(params):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; each of them is "
                          "changed as often as it is named", stacklevel=4)
        known = {id(p) for g in self.param_groups for p in g["params"]}
        if not known.isdisjoint(id(p) for p in params):
            raise ValueError("a parameter is in more than one parameter group")

    # State.
    def state_dict(self):
        """{"state": by the parameters' numbers, "param_groups": options, and numbers for parameters}.

        Holds references, not copies.
        """
        for hook in self._state_dict_pre_hooks.values():
            hook(self)
        number = {}
        for p in chain.from_iterable(group["params"] for group in self.param_groups):
            number.setdefault(id(p), len(number))
        groups = [{**{k: v for k, v in group.items() if k != "params"},
                   "params": [number[id(p)] for p in group["params"]]}
                  for group in self.param_groups]
        state = {number[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._state_dict_post_hooks.values():
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict):
        """Takes over the state, cast to the parameters' dtypes ("step" keeps its own), and the options."""
        state_dict = dict(state_dict)
        for hook in self._load_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        given, mine = deepcopy(state_dict["param_groups"]), self.param_groups
        if len(given) != len(mine):
            raise ValueError(f"the state dict has a different number of param groups: {len(given)}, not "
                             f"{len(mine)}")
        if any(len(g["params"]) != len(m["params"]) for g, m in zip(given, mine)):
            raise ValueError("a param group of the state dict has another number of params: it must be the "
                             "size of optimizer's group")
        group_of, param_of = {}, {}
        for g, m in zip(given, mine):
            for number, p in zip(g["params"], m["params"]):
                param_of[number], group_of[number] = p, g
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                state[param_of[key]] = self._cast(param_of[key], value, group_of[key])
            else:
                state[key] = value
        groups = []
        for g, m in zip(given, mine):
            g["params"] = m["params"]
            if "param_names" in m and "param_names" not in g:
                g["param_names"] = m["param_names"]
            groups.append(g)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._load_post_hooks.values():
            hook(self)

    def _cast(self, param, value, group, key=None):
        if isinstance(value, Tensor):
            if key == "step":
                return value.to(param.device) if group.get("capturable") else value
            return (value.to(param.dtype) if param.is_floating_point() else value).to(param.device)
        if isinstance(value, dict):
            return {k: self._cast(param, v, group, k) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._cast(param, v, group) for v in value)
        return value

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        if "_step_pre_hooks" not in self.__dict__:
            self._make_hooks()
        for group in self.param_groups:
            for name, default in self.defaults.items():  # options that are newer than the state
                group.setdefault(name, default)

    def __repr__(self):
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params")
        return text + ")"

    # Hooks.
    def register_step_pre_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) before a step; it may return new (args, kwargs)."""
        return _register(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) after a step."""
        return _register(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Calls hook(optimizer) before state_dict()."""
        return _register(self._state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Calls hook(optimizer, state_dict) after state_dict(); it may return another state_dict."""
        return _register(self._state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Calls hook(optimizer, state_dict) before load_state_dict(); it may return another state_dict."""
        return _register(self._load_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Calls hook(optimizer) after load_state_dict()."""
        return _register(self._load_post_hooks, hook, prepend)
