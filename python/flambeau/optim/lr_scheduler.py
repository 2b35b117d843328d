"""Learning rates that follow a schedule: every call of step() sets the rates of an optimizer's groups.

Most schedulers say how the rate changes from the step before, so that several can act on one optimizer.
"""
import functools
import math
import types
import warnings
from bisect import bisect_right
from collections import Counter

from .._C import Tensor
from .optimizer import Optimizer

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR",
           "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR",
           "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"]


def _check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _copy(value):
    return value.clone() if isinstance(value, Tensor) else value


def _set(group, name, value):
    """A rate that is a tensor stays that tensor."""
    if isinstance(group[name], Tensor):
        group[name].fill_(value)
    else:
        group[name] = value


def _for_groups(optimizer, name, value):
    """One value for each group."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups: expected {count}, "
                         f"got {len(value)}")
    return list(value)


class LRScheduler:
    """Base of schedulers. A subclass defines get_lr(), the rates at self.last_epoch."""

    def __init__(self, optimizer, last_epoch=-1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copy(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param_groups[{i}] has no 'initial_lr', which last_epoch >= 0 needs "
                               "(resuming)")
        self.base_lrs = [_copy(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._count_steps()
        self._initial_step()

    def _count_steps(self):
        """From now on the optimizer remembers that it has made a step: schedulers warn if they come first."""
        optimizer = self.optimizer
        if hasattr(optimizer.step, "_counted"):
            return
        step = type(optimizer).step

        @functools.wraps(step)
        def counted(self, *args, **kwargs):
            self._opt_called = True
            return step(self, *args, **kwargs)

        counted._counted = True
        optimizer.step = types.MethodType(counted, optimizer)

    def _initial_step(self):
        self._step_count = 0
        self.step()

    def state_dict(self):
        """All attributes but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates that step() set last, one for each group."""
        return self._last_lr

    def get_lr(self):
        raise NotImplementedError(f"{type(self).__name__} has no get_lr()")

    def _rates(self):
        return [_copy(group["lr"]) for group in self.optimizer.param_groups]

    def step(self, epoch=None):
        """Sets the rates of the next epoch."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn("lr_scheduler.step() was called before optimizer.step(): the first value of the "
                          "schedule is skipped", UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            warnings.warn("the argument epoch of step() is deprecated", UserWarning, stacklevel=2)
            rates = self._rates_at(epoch)
        self._apply(rates)

    def _rates_at(self, epoch):
        self.last_epoch = epoch
        return self._get_closed_form_lr() if hasattr(self, "_get_closed_form_lr") else self.get_lr()

    def _apply(self, rates):
        for group, rate in zip(self.optimizer.param_groups, rates):
            _set(group, "lr", rate)
        self._last_lr = self._rates()


_LRScheduler = LRScheduler


class _Lambdas(LRScheduler):
    """Schedulers whose factors are the user's functions: they can't be in a state_dict, unless they are
    objects.
    """

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        self.lr_lambdas = _for_groups(optimizer, "lr_lambda", lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [None if isinstance(f, types.FunctionType) else dict(f.__dict__)
                               for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict):
        state = dict(state_dict)
        for f, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas")):
            if attributes is not None:
                f.__dict__.update(attributes)
        self.__dict__.update(state)


class LambdaLR(_Lambdas):
    """The initial rate times lr_lambda(epoch)."""

    def get_lr(self):
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_Lambdas):
    """Multiplies the rate with lr_lambda(epoch) at every epoch but the first."""

    def get_lr(self):
        if self.last_epoch <= 0:
            return self._rates()
        return [rate * f(self.last_epoch) for f, rate in zip(self.lr_lambdas, self._rates())]


class StepLR(LRScheduler):
    """Multiplies the rate with gamma every step_size epochs."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        decays = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [rate * self.gamma if decays else rate for rate in self._rates()]

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the rate with gamma at each of the milestones."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        factor = self.gamma ** self.milestones[self.last_epoch]
        return [rate * factor if self.last_epoch in self.milestones else rate for rate in self._rates()]

    def _get_closed_form_lr(self):
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The initial rate times factor, until epoch total_iters."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor must lie in [0, 1], got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        change = {0: self.factor, self.total_iters: 1.0 / self.factor if self.factor
                  else 1.0}.get(self.last_epoch)
        return self._rates() if change is None else [rate * change for rate in self._rates()]

    def _get_closed_form_lr(self):
        return [base * (self.factor if self.last_epoch < self.total_iters else 1) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """The initial rate times a factor that goes from start_factor to end_factor in total_iters epochs."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1:
            raise ValueError(f"LinearLR: start_factor must lie in (0, 1], got {start_factor}")
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: end_factor must lie in [0, 1], got {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        rates, change = self._rates(), self.end_factor - self.start_factor
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in rates]
        if self.last_epoch > self.total_iters:
            return rates
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return [rate * (1.0 + change / before) for rate in rates]

    def _get_closed_form_lr(self):
        passed = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * passed)
                for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the rate with gamma every epoch."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [rate * self.gamma if self.last_epoch > 0 else rate for rate in self._rates()]

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The initial rate times (1 - epoch / total_iters)^power."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._rates()
        left = self.total_iters - self.last_epoch
        return [rate * (left / (left + 1)) ** self.power for rate in self._rates()]

    def _get_closed_form_lr(self):
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate down to eta_min in T_max epochs, and up again (SGDR without
    restarts).
    """

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        epoch, rates = self.last_epoch, self._rates()
        if epoch == 0:
            return rates
        if self._step_count == 1:  # resumed: no rate of the epoch before
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # up from the lowest point
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * rise for rate, base in zip(rates, self.base_lrs)]
        change = self._height(epoch) / self._height(epoch - 1)
        return [change * (rate - self.eta_min) + self.eta_min for rate in rates]

    def _height(self, epoch):
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _get_closed_form_lr(self):
        height = self._height(self.last_epoch) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the initial rate down to eta_min, again and again: the first takes T_0 epochs, every
    next
    T_mult times as many (Loshchilov and Hutter, 2016). step() takes fractions of epochs."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"eta_min must be a float or int, not {eta_min} of {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch=None):
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif self.T_mult == 1 or epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_i = self.T_0 * self.T_mult**restarts
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
        self._step_count += 1
        self.last_epoch = math.floor(epoch)
        self._apply(self.get_lr())


class SequentialLR(LRScheduler):
    """One scheduler after the other: the next takes over at each milestone."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__}: schedulers is empty, at least one is needed")
        for i, scheduler in enumerate(schedulers):
            _check_same_optimizer(self, scheduler, optimizer, i)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"SequentialLR: {len(schedulers)} schedulers need {len(schedulers) - 1} "
                             f"milestones between them, got {len(milestones)}")
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch, self.optimizer = last_epoch + 1, optimizer
        for group in optimizer.param_groups:  # undo the first steps, which all of them made
            _set(group, "lr", group["initial_lr"])
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self):
        self.last_epoch += 1
        which = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[which]
        if which > 0 and self._milestones[which - 1] == self.last_epoch:
            _begin(scheduler)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self):
        return _state_of_several(self)

    def load_state_dict(self, state_dict):
        _load_several(self, state_dict)


def _begin(scheduler):
    """Its first step."""
    if (isinstance(scheduler, (CosineAnnealingWarmRestarts, SequentialLR))
            or not hasattr(scheduler, "_rates_at")):
        scheduler.step(0)
    else:
        scheduler._step_count += 1
        scheduler._apply(scheduler._rates_at(0))


def _state_of_several(self):
    state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
    state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
    return state


def _load_several(self, state_dict):
    state = dict(state_dict)
    for scheduler, own in zip(self._schedulers, state.pop("_schedulers")):
        scheduler.load_state_dict(own)
    self.__dict__.update(state)


def _check_same_optimizer(self, scheduler, optimizer, i):
    name = type(self).__name__
    if not hasattr(scheduler, "optimizer"):
        raise TypeError(f"{name}: scheduler {i} has no attribute `optimizer`.")
    if isinstance(scheduler, ReduceLROnPlateau):
        raise ValueError(f"{name}: scheduler {i} is a `ReduceLROnPlateau`, whose `step` needs a metric that "
                         "cannot be passed on.")
    if scheduler.optimizer is not optimizer:
        raise ValueError(f"{name}: all schedulers must have the same optimizer, but scheduler {i} "
                         f"({type(scheduler).__name__}) has another one")


class ChainedScheduler(LRScheduler):
    """Several schedulers at once: every step() is a step of all."""

    def __init__(self, schedulers, optimizer=None):
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__}: schedulers is empty, at least one is needed")
        optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            _check_same_optimizer(self, scheduler, optimizer, i)
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = self._rates()

    def step(self):
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()

    def state_dict(self):
        return _state_of_several(self)

    def load_state_dict(self, state_dict):
        _load_several(self, state_dict)


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate with factor once a measure has not improved for patience epochs: step(measure)."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4,
                 threshold_mode="rel", cooldown=0, min_lr=0, eps=1e-8):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        _check_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer, self.factor, self.patience, self.eps = optimizer, factor, patience, eps
        self.min_lrs = _for_groups(optimizer, "min_lr", min_lr)
        self.mode, self.threshold = mode, threshold
        self.threshold_mode, self.cooldown = threshold_mode, cooldown
        self.default_min_lr, self.last_epoch = None, 0
        self._last_lr = self._rates()
        self._reset()

    def _reset(self):
        self.best = self.mode_worse = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = self.num_bad_epochs = 0

    @property
    def in_cooldown(self):
        return self.cooldown_counter > 0

    def is_better(self, a, best):
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            limit = best * (1 + sign * self.threshold)
        else:
            limit = best + sign * self.threshold
        return a < limit if self.mode == "min" else a > limit

    def step(self, metrics, epoch=None):
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _reduce_lr(self):
        if len(self.optimizer.param_groups) != len(self.min_lrs):  # groups were added
            self.min_lrs += [self.min_lrs[-1]] * (len(self.optimizer.param_groups) - len(self.min_lrs))
        for group, least in zip(self.optimizer.param_groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set(group, "lr", new)


class CyclicLR(LRScheduler):
    """The rate rises from base_lr to max_lr in step_size_up steps and falls again in step_size_down (Smith,
    2015).

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
    rate
    divided by final_div_factor (Smith and Topin, 2017). A step is a batch; no more than total_steps.

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
