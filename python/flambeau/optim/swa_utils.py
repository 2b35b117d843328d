"""Averages of a model's parameters over training, and what goes with them (Izmailov et al., 2018)."""
import itertools
import math
from copy import deepcopy

from .. import _C, nn
from ..autograd.grad_mode import no_grad
from .lr_scheduler.base import LRScheduler, _for_groups

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
           "get_swa_multi_avg_fn", "update_bn"]


def get_swa_avg_fn():
    """The mean of all models so far."""

    @no_grad()
    def average(averaged, current, num_averaged):
        return averaged + (current - averaged) / (num_averaged + 1)

    return average


def get_ema_avg_fn(decay=0.999):
    """The exponential moving average: decay * average + (1 - decay) * model."""
    _check_decay(decay)

    @no_grad()
    def average(averaged, current, num_averaged):
        return decay * averaged + (1 - decay) * current

    return average


def _check_decay(decay):
    if not 0 <= decay <= 1:
        raise ValueError(f"decay must lie in [0, 1], got {decay}")


def _for_lists(average):
    @no_grad()
    def update(averaged, current, num_averaged):
        for a, c in zip(averaged, current):
            a.copy_(average(a, c, num_averaged) if a.is_floating_point() or a.is_complex() else c)

    return update


def get_swa_multi_avg_fn():
    """As get_swa_avg_fn(), for lists of tensors, in place."""
    return _for_lists(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay=0.999):
    """As get_ema_avg_fn(), for lists of tensors, in place."""
    return _for_lists(get_ema_avg_fn(decay))


class AveragedModel(nn.Module):
    """A copy of a model whose parameters are an average: update_parameters(model) adds the model's to it.

    avg_fn(averaged, current, num_averaged) returns a new average; multi_avg_fn changes lists of them in
    place. use_buffers: averages buffers too; otherwise they are copied.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _averaged(self, model):
        return (itertools.chain(model.parameters(), model.buffers()) if self.use_buffers
                else model.parameters())

    @no_grad()
    def update_parameters(self, model):
        mine = [p.detach() for p in self._averaged(self.module)]
        theirs = [p.detach().to(m.device) for p, m in zip(self._averaged(model), mine)]
        if int(self.n_averaged) == 0:
            for a, c in zip(mine, theirs):
                a.copy_(c)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(mine, theirs, self.n_averaged)
        elif self.avg_fn is not None:
            for a, c in zip(mine, theirs):
                a.copy_(self.avg_fn(a, c, self.n_averaged))
        else:
            get_swa_multi_avg_fn()(mine, theirs, self.n_averaged)
        if not self.use_buffers:
            for a, c in zip(self.module.buffers(), model.buffers()):
                a.detach().copy_(c.detach())
        self.n_averaged += 1


@no_grad()
def update_bn(loader, model, device=None):
    """Computes the running statistics of a model's batch norms anew, as means over the loader's batches."""
    norms = {m: m.momentum for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)}
    if not norms:
        return
    was_training = model.training
    model.train()
    for module in norms:
        module.reset_running_stats()
        module.momentum = None  # a plain mean
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for module, momentum in norms.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Goes from the optimizer's rate to swa_lr in anneal_epochs, and stays there."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy can be 'cos' or 'linear', not {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be an int of 0 or more, got {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, _for_groups(optimizer, "swa_lr", swa_lr)):
            group["swa_lr"] = rate
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, step):
        """How much of the way is done after a number of steps."""
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self):
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            target, rate = group["swa_lr"], group["lr"]
            first = target if before == 1 else (rate - before * target) / (1 - before)
            rates.append(target * now + first * (1 - now))
        return rates
