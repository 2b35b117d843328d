"""A rate that falls where a measure no longer improves."""
import math

from .base import LRScheduler, _check_optimizer, _for_groups, _set


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
