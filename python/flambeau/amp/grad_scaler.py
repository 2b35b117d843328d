"""GradScaler: scales the loss, so that gradients in float16 don't vanish, and unscales them for the step."""
import warnings
from collections import defaultdict
from enum import Enum

from .. import _C
from ..autograd.grad_mode import no_grad
from ..optim.rule import RuleOptimizer

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    READY, UNSCALED, STEPPED = 0, 1, 2


def _amp_foreach_non_finite_check_and_unscale_(grads, found_inf, inv_scale):
    """grads *= inv_scale in place; found_inf, of one element, becomes 1 where a gradient was inf or nan."""
    for grad in grads:
        found_inf.copy_(found_inf.maximum(grad.isfinite().all().logical_not().to(found_inf.dtype)))
        grad.mul_(inv_scale.to(grad.dtype) if grad.dtype is _C.float64 else inv_scale)


def _amp_update_scale_(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval):
    """The scale and the count of steps since it changed, for the next step, in place and without a wait."""
    overflowed = found_inf.reshape(()) > 0
    steps = growth_tracker + 1
    grows = steps == growth_interval
    grown = scale * growth_factor
    kept = _C.where(grows & grown.isfinite(), grown, scale)
    scale.copy_(_C.where(overflowed, scale * backoff_factor, kept))
    growth_tracker.copy_(_C.where(overflowed | grows, _C.zeros_like(steps), steps))
    return scale


def _fresh_state():
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update().

    A step whose gradients have inf or nan is left out, and the scale is multiplied by backoff_factor; after
    growth_interval steps without one it is multiplied by growth_factor. The scale lives on the device of the
    first loss; step() reads whether there were inf or nan, and only there the host waits.
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5,
                 growth_interval=2000, enabled=True):
        self._device, self._enabled = device, enabled
        if device == "cuda" and enabled and not _C._cuda.device_count():
            warnings.warn("GradScaler for CUDA was enabled, but there is no CUDA device: it is "
                          "disabled.", stacklevel=2)
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._scale = init_scale, None
        self._init_growth_tracker, self._growth_tracker = 0, None
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._per_optimizer_states = defaultdict(_fresh_state)

    def _scale_on(self, device):
        if self._scale is None:
            self._scale = _C.full((), self._init_scale, dtype=_C.float32, device=device)
            self._growth_tracker = _C.full((), self._init_growth_tracker, dtype=_C.int32, device=device)
        return self._scale.to(device, non_blocking=True)

    def _made_scale(self, caller):
        if self._scale is None:
            raise AssertionError(f"Attempted {caller} but the scaler has no scale yet: scale() makes it, for "
                                 "the device of the loss")
        return self._scale

    def scale(self, outputs):
        """outputs times the scale: a tensor, or nested iterables of them."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            return outputs * self._scale_on(outputs.device)
        if isinstance(outputs, (list, tuple)):
            scaled = map(self.scale, outputs)
            return type(outputs)(*scaled) if hasattr(outputs, "_fields") else type(outputs)(scaled)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError(f"scale() takes a Tensor or an iterable of them, not {type(outputs).__name__}")

    def _unscale_grads_(self, optimizer, inv_scale, allow_fp16=False):
        """Gradients times inv_scale; by device, whether one was inf or nan."""
        by_device = defaultdict(list)
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.dtype is _C.float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                by_device[p.grad.device].append(p.grad)
        found = {}
        for device, grads in by_device.items():
            found[device] = _C.zeros((1,), dtype=_C.float32, device=device)
            inverse = inv_scale.to(device, non_blocking=True)
            _amp_foreach_non_finite_check_and_unscale_(grads, found[device], inverse)
        return found

    @no_grad()
    def unscale_(self, optimizer):
        """Divides the gradients of an optimizer's parameters by the scale: before clipping them, say."""
        if not self._enabled:
            return
        scale = self._made_scale("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last "
                               "update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, scale.double().reciprocal().float())
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step(), unless a gradient is inf or nan. Returns what it returns, or None."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._made_scale("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer: it has no gradients.")
        found = list(state["found_inf_per_device"].values())
        if _C._is_capturing() and isinstance(optimizer, RuleOptimizer) and optimizer.can_take_back():
            result = optimizer.step_unless(sum((f.to(found[0].device) for f in found[1:]), found[0]) > 0,
                                           *args, **kwargs)
        else:
            overflowed = sum(f.item() for f in found)
            result = None if overflowed else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    @no_grad()
    def update(self, new_scale=None):
        """Sets the scale for the next iteration; call it once, after all steps."""
        if not self._enabled:
            return
        scale = self._made_scale("update")
        if new_scale is not None:
            if isinstance(new_scale, _C.Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad:
                    raise AssertionError("new_scale should be a float or a 1-element tensor that requires no "
                                         f"gradient, got sizes {tuple(new_scale.shape)}")
                scale.copy_(new_scale.reshape(()))
            else:
                scale.fill_(new_scale)
        else:
            found = [f.to(scale.device, non_blocking=True) for state in self._per_optimizer_states.values()
                     for f in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            _amp_update_scale_(scale, self._growth_tracker, sum(found[1:], found[0]), self._growth_factor,
                               self._backoff_factor, self._growth_interval)
        self._per_optimizer_states = defaultdict(_fresh_state)

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _check_inf_per_device(self, optimizer):
        scale = self._made_scale("_check_inf_per_device")
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = self._unscale_grads_(
            optimizer, _C.ones((), dtype=_C.float32, device=scale.device), allow_fp16=True)
        return self._found_inf_per_device(optimizer)

    def _get_scale_async(self):
        return self._scale

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker)

    def is_enabled(self):
        return self._enabled

    def get_scale(self):
        if not self._enabled:
            return 1.0
        return float(self._init_scale if self._scale is None else self._scale)

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def state_dict(self):
        """Empty if the scaler is not enabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("load_state_dict() was given an empty dict; a disabled GradScaler saves such "
                               "a one.")
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self):
        if self._enabled and self._per_optimizer_states:
            raise AssertionError("A GradScaler can be pickled at the beginning of an iteration, or after "
                                 "update(), and not in between.")
        return {**self.__dict__, "_init_scale": self.get_scale(), "_scale": None,
                "_init_growth_tracker": self._get_growth_tracker(), "_growth_tracker": None}
