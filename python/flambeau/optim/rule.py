"""Optimizers that are a rule: from a parameter, its gradient and its state to their new values.

The rule is plain operators that change nothing. step() compiles it, once for all parameters of equal options,
dtype and number of dimensions: a parameter's whole update is one kernel that reads and writes every element
once. In a training step that compile() captures, the rule becomes a part of the step's graph.
"""
from types import SimpleNamespace

from .. import _C
from .._C import Tensor
from ..compile_function import trace
from ..autograd.grad_mode import enable_grad, set_grad_enabled
from .optimizer import Optimizer, _step_post_hooks, _step_pre_hooks

_PACKAGE = __name__.rpartition(".")[0] + "."
_RECOMPILE_LIMIT = 64  # numbers of dimensions, layouts


def check_at_least(low, **values):
    """Raises ValueError unless every value is at least low."""
    for name, value in values.items():
        if not low <= value:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas):
    for index, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def check_rate(lr, foreach=False, capturable=False):
    """Raises ValueError unless lr can be a learning rate: a number, or a tensor with one element."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr is a Tensor: with foreach=True this needs capturable=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    if not 0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")


def is_set(option):
    """Whether an option is not 0; in a rule, where it may be a tensor that stands for any other number."""
    return isinstance(option, Tensor) or option != 0


class RuleOptimizer(Optimizer):
    """A subclass defines rule(), and start() and numbers() if it needs them.

    Its options foreach, fused and capturable choose among PyTorch's implementations; here there is one.
    """

    options_vary = True  #: False: every value of an option has a kernel of its own

    def __init__(self, params, defaults):
        if defaults.get("fused") and defaults.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`")
        if defaults.get("fused") and defaults.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        super().__init__(params, defaults)
        self._kernels, self._on_devices = {}, {}

    def start(self, group, p):
        """The state of a parameter that has its first gradient: a dict."""
        return {}

    def numbers(self, group, state):
        """What changes from step to step and is one number for all elements: {name: float, or bool for a
        choice}. Called after "step" was counted; may change state of one element. The count of steps is
        number_of(state["step"]): in a capture a tensor, and so are the numbers that follow from it. With the
        option capturable it is on the device, and this a part of the rule.
        """
        return {}

    def rule(self, p, g, state, o):
        """The new parameter, and what is new in state as a dict.

        g: the gradient, its sign changed if the option maximize is set. o: the group's options and numbers().
        Options that are numbers, 0 apart, are tensors where the rule is compiled: is_set(option) is all that
        may be asked of them.
        """
        raise NotImplementedError

    def step(self, closure=None):
        """Changes every parameter that has a gradient. closure() returns the loss, and makes gradients."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        differentiable = self.defaults.get("differentiable", False)
        with set_grad_enabled(differentiable):
            for group in self.param_groups:
                options = (None if differentiable else
                           _Captured(group, self.options_vary) if _C._is_capturing() else
                           _Options(group, self.options_vary, self._kernels, self._on_devices))
                for p in group["params"]:
                    if p.grad is not None:
                        self._update(group, options, p, p.grad)
        return loss

    def _update(self, group, options, p, g):
        state = self.state.get(p)
        if not state and (state := self.start(group, p)):
            self.state[p] = state
        if "step" in state:
            state["step"] += 1
        # What the host does not know: steps may be recorded as CUDA graphs.
        counts_there = group.get("capturable") and p.is_cuda and "step" in state and state["step"].is_cuda
        numbers = {} if counts_there else self.numbers(group, state)
        if g.is_sparse:
            return self.sparse_rule(group, p, g.coalesce(), state, numbers)
        arrays = {k: v for k, v in state.items()
                  if isinstance(v, Tensor) and (v.dim() > 0 or p.dim() == 0) and k not in self.counters}
        if counts_there:
            arrays["step"] = state["step"]
        complex_p = p.is_complex()
        if complex_p:  # as a real one with one more dimension
            p, g = _C.view_as_real(p), _C.view_as_real(g)
            arrays = {k: v if k in self.counters else _C.view_as_real(v) for k, v in arrays.items()}
        if options is None:
            new, changed = self._direct(group, p, g, arrays, numbers)
            p.copy_(new)
        elif isinstance(options, _Captured):
            if counts_there:
                numbers = self.numbers(options.known, arrays)
            changed = _update_in_place(self.rule, p, g, arrays, options.namespace(numbers))
        else:
            changed = self._kernel(options, numbers, arrays)(p, g, arrays, options.values(numbers, p.device))
        if changed and not state:
            self.state[p] = state
        for name, value in changed.items():
            if name in arrays and options is None:
                if value is not arrays[name]:
                    arrays[name].copy_(value)
            else:
                state[name] = _C.view_as_complex(value) if complex_p else value

    def can_take_back(self):
        """Whether all that a step changes is known: parameters, and tensors in the state."""
        hooks = (_step_pre_hooks, _step_post_hooks, self._step_pre_hooks, self._step_post_hooks)
        plain = "step" not in self.__dict__ or getattr(self, "_opt_called", False)  # a scheduler counts steps
        return plain and not any(map(len, hooks)) and type(self).__module__.startswith(_PACKAGE)

    def step_unless(self, unwanted, *args, **kwargs):
        """In a capture, step() that is made, and taken back where the 1-element tensor unwanted is true."""
        params = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        changed = params + [t for p in params for t in self.state.get(p, {}).values()]
        before = [t.detach().clone() for t in changed]
        result = self.step(*args, **kwargs)
        if len(changed) != sum(1 + len(self.state.get(p, {})) for p in params):
            bool(unwanted)  # ends the capture: whether there is state now is for the host to know
        with set_grad_enabled(False):
            for t, old in zip(changed, before):
                t.copy_(_C.where(unwanted.reshape(()).to(t.device), old, t))
        return result

    def sparse_rule(self, group, p, g, state, numbers):
        """A step by a sparse gradient, in place."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    counters = ("step",)  #: state that counts, one element for each parameter

    def _direct(self, group, p, g, arrays, numbers):
        return self.rule(p, -g if group.get("maximize") else g, arrays,
                         SimpleNamespace(**{**group, **numbers}))

    @staticmethod
    def kept(state, name, value, o):
        """value; in a differentiable step the state itself, changed: what reads it must be differentiated
        before the next step, as in PyTorch.
        """
        if not o.differentiable:
            return value
        return state[name].copy_(value)

    def _kernel(self, options, numbers, arrays):
        key = (*arrays, *((k, v if isinstance(v, bool) else None) for k, v in numbers.items()))
        kernel = options.kernels.get(key)
        if kernel is None:
            kernel = options.kernels[key] = _Kernel(self, options, numbers, tuple(arrays))
        return kernel

    def __setstate__(self, state):
        super().__setstate__(state)
        self._kernels, self._on_devices = {}, {}


def number_of(tensor):
    """The number in a tensor of one element; in a capture, a tensor with that number in full precision."""
    return tensor.reshape(()).to(_C.float64, copy=True) if _C._is_capturing() else tensor.item()


def _update_in_place(rule, p, g, state, o):
    """One update by a rule. Returns the state that did not exist before."""
    new, changed = rule(p, -g if getattr(o, "maximize", False) else g, state, o)
    p.copy_(new)
    made = {}
    for name, value in changed.items():
        if name in state:
            state[name].copy_(value)
        else:
            made[name] = value
    return made


def _sort_options(group, vary):
    """A group's options: those that a kernel is made for, and those that it is given, numbers."""
    fixed, varying = {}, {}
    for name, value in group.items():
        if name in ("params", "param_names", "initial_lr"):
            continue
        if isinstance(value, Tensor) and not (name == "lr" and group.get("capturable")):
            value = number_of(value)
        if isinstance(value, (tuple, list)):
            value = tuple(number_of(v) if isinstance(v, Tensor) else v for v in value)
            if vary and value and all(isinstance(v, (float, Tensor)) for v in value):
                varying[name] = value
                continue
        if name == "lr" or (vary and not isinstance(value, bool) and isinstance(value, (int, float, Tensor))
                            and is_set(value)):
            varying[name] = value
        else:
            fixed[name] = value
    return fixed, varying


class _Captured:
    """A group's options in a step that is captured."""

    def __init__(self, group, vary):
        fixed, varying = _sort_options(group, vary)
        self.known = {**fixed, **{k: self._tensors(v) for k, v in varying.items()}}

    def _tensors(self, value):
        if isinstance(value, tuple):
            return tuple(map(self._tensors, value))
        # As in kernels of their own, where every number is one.
        return value if isinstance(value, Tensor) else _C._number_tensor(value)

    def namespace(self, numbers):
        """What a rule sees."""
        given = {k: v if isinstance(v, bool) else self._tensors(v) for k, v in numbers.items()}
        return SimpleNamespace(**{**self.known, **given})


class _Options:
    """A group's options for this step: what a kernel is made for, and numbers that it is given."""

    def __init__(self, group, vary, kernels, on_devices):
        self._numbers = self._values = None
        self._on_devices = on_devices  # the numbers of earlier steps: {device: (numbers, tensor)}
        self.fixed, self.varying = _sort_options(group, vary)
        self.kernels = kernels.setdefault((tuple(self.fixed.items()), tuple(self.varying)), {})
        self._flat = [x for v in self.varying.values() for x in (v if isinstance(v, tuple) else (v,))]

    def values(self, numbers, device):
        """All numbers as one tensor on a device. A rate that is a tensor is not read."""
        if self._values is None or self._numbers != numbers or self._values.device != device:
            given = self._flat + [float(v) for v in numbers.values() if not isinstance(v, bool)]
            values = self._known([0.0 if isinstance(v, Tensor) else v for v in given], device)
            if any(isinstance(v, Tensor) for v in given):
                values = _C.stack([v.to(device, _C.float64).reshape(()) if isinstance(v, Tensor) else values[k]
                                   for k, v in enumerate(given)])
            self._numbers, self._values = numbers, values
        return self._values

    def _known(self, numbers, device):
        """On the device; those of the last step if they are the same."""
        known = self._on_devices.get(device)
        if known is None or known[0] != numbers:
            known = self._on_devices[device] = numbers, _C.tensor(numbers, dtype=_C.float64).to(device)
        return known[1]


class _Kernel:
    """The rule, compiled for these options, choices and names of state."""

    def __init__(self, optimizer, options, numbers, state_names):
        rule, numbers_of, name = optimizer.rule, optimizer.numbers, type(optimizer).__name__
        fixed = {**options.fixed, **{k: v for k, v in numbers.items() if isinstance(v, bool)}}
        varying = {**options.varying, **{k: v for k, v in numbers.items() if not isinstance(v, bool)}}
        self._made = names = []

        def update(p, g, values, *arrays):
            each = iter(values.unbind())
            given = {k: tuple(next(each) for _ in v) if isinstance(v, tuple) else next(each)
                     for k, v in varying.items()}
            state = dict(zip(state_names, arrays))
            if "step" in state:
                given |= numbers_of({**fixed, **given}, state)
            made = _update_in_place(rule, p, g, state, SimpleNamespace(**{**fixed, **given}))
            names[:] = made
            return tuple(made.values()) or None

        self._run = trace(update, dynamic=True, recompile_limit=_RECOMPILE_LIMIT, name=f"{name}.step")

    def __call__(self, p, g, arrays, values):
        """Runs in place; returns state that did not exist before."""
        result = self._run(p, g, values, *arrays.values())
        return dict(zip(self._made, result)) if result else {}
