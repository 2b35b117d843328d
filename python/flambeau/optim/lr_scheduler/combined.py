"""Several schedulers of one optimizer, one after the other or at once."""
from bisect import bisect_right

from .base import LRScheduler, _set
from .factors import CosineAnnealingWarmRestarts
from .plateau import ReduceLROnPlateau


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
