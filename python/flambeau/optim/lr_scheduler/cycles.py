"""Schedules of steps rather than epochs, whose rate rises and falls, and the momentum against it."""
import math
import types

from .base import LRScheduler, _check_optimizer, _for_groups, _set


class CyclicLR(LRScheduler):
    """The rate rises from base_lr to max_lr in step_size_up steps, and falls in step_size_down (Smith, 2015).

    mode: "triangular"; "triangular2", every cycle half as high; "exp_range", times gamma^step. scale_fn
    replaces the mode's factor; it is given the cycle or the step (scale_mode). cycle_momentum: the momentum
    runs the other way.
    """

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None,
                 mode="triangular", gamma=1.0, scale_fn=None, scale_mode="cycle", cycle_momentum=True,
                 base_momentum=0.8, max_momentum=0.9, last_epoch=-1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        if last_epoch == -1:
            for group, base in zip(optimizer.param_groups, _for_groups(optimizer, "base_lr", base_lr)):
                _set(group, "lr", base)
        self.max_lrs = _for_groups(optimizer, "max_lr", max_lr)
        step_size_up = float(step_size_up)
        self.total_size = step_size_up + (step_size_up if step_size_down is None else float(step_size_down))
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = (scale_mode if scale_fn is not None
                           else ("iterations" if mode == "exp_range" else "cycle"))
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _check_momentum(optimizer)
            self.base_momentums = _for_groups(optimizer, "base_momentum", base_momentum)
            self.max_momentums = _for_groups(optimizer, "max_momentum", max_momentum)
            if last_epoch == -1:
                for group, most, base in zip(optimizer.param_groups, self.max_momentums, self.base_momentums):
                    _set_momentum(group, most, self.use_beta1)
                    group["max_momentum"], group["base_momentum"] = most, base
        super().__init__(optimizer, last_epoch)
        self.base_lrs = _for_groups(optimizer, "base_lr", base_lr)

    def scale_fn(self, x):
        """The height of a cycle."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 1 / 2.0 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self):
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, base, most in zip(self.optimizer.param_groups, self.base_momentums,
                                         self.max_momentums):
                _set_momentum(group, most - (most - base) * height * scale, self.use_beta1)
        return [base + (most - base) * height * scale for base, most in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = (None if custom is None or isinstance(custom, types.FunctionType)
                                     else dict(custom.__dict__))
        return state

    def load_state_dict(self, state_dict):
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom", None)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        self.__dict__.update(state)


def _check_momentum(optimizer):
    """Whether the momentum is betas[0]. Raises ValueError if the optimizer has neither."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("cycle_momentum=True needs an optimizer with momentum or betas")
    return "betas" in optimizer.defaults


def _set_momentum(group, value, use_beta1):
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class OneCycleLR(LRScheduler):
    """The rate rises from max_lr / div_factor to max_lr in pct_start of all steps, then falls to the first
    rate divided by final_div_factor (Smith and Topin, 2017). A step is a batch; no more than total_steps.

    three_phase: falls as it rose, then on to the last rate. cycle_momentum: the momentum runs the other way.
    """

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
                 anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95,
                 div_factor=25.0, final_div_factor=1e4, three_phase=False, last_epoch=-1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for name, value in (("total_steps", total_steps), ("epochs", epochs),
                            ("steps_per_epoch", steps_per_epoch)):
            if value is not None and (value <= 0 or not isinstance(value, int)):
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            total_steps = epochs * steps_per_epoch
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start must be a float in [0, 1], got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy can be 'cos' or 'linear', not {anneal_strategy}")
        self.total_steps, self.cycle_momentum = total_steps, cycle_momentum
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = self._phases(pct_start, three_phase)
        rates = _for_groups(optimizer, "max_lr", max_lr)
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, rates):
                group["initial_lr"], group["max_lr"] = most / div_factor, most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self.use_beta1 = _check_momentum(optimizer)
            most = _for_groups(optimizer, "max_momentum", max_momentum)
            least = _for_groups(optimizer, "base_momentum", base_momentum)
            if last_epoch == -1:
                for group, high, low in zip(optimizer.param_groups, most, least):
                    _set_momentum(group, high, self.use_beta1)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    def _phases(self, pct_start, three_phase):
        """Of every phase: its last step, and what rate and momentum are at its beginning and end."""
        def phase(end, start_lr, end_lr, start_momentum, end_momentum):
            return {"end_step": end, "start_lr": start_lr, "end_lr": end_lr, "start_momentum": start_momentum,
                    "end_momentum": end_momentum}

        last = self.total_steps - 1
        rise = phase(pct_start * self.total_steps - 1, "initial_lr", "max_lr", "max_momentum",
                     "base_momentum")
        if not three_phase:
            return [rise, phase(last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        return [rise, phase(2 * pct_start * self.total_steps - 2, "max_lr", "initial_lr", "base_momentum",
                            "max_momentum"),
                phase(last, "initial_lr", "min_lr", "max_momentum", "max_momentum")]

    def _anneal(self, start, end, part):
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (1 + math.cos(math.pi * part))
        return (end - start) * part + start

    def get_lr(self):
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Step {step} is past the end: the number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        part = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                _set_momentum(group, momentum, self.use_beta1)
        return rates
