"""What schedulers are made of: a rate for each group of an optimizer, set by step()."""
import functools
import types
import warnings

from ..._C import Tensor
from ..optimizer import Optimizer


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
