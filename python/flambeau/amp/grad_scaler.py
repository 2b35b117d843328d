"""GradScaler: scales the loss, so that gradients in float16 don't vanish, and unscales them for the step."""
import warnings
from collections import defaultdict
from enum import Enum

from .. import _C
from ..autograd.grad_mode import no_grad

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    READY, UNSCALED, STEPPED = 0, 1, 2


class GradScaler:
    """scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update().

    A step whose gradients have inf or nan is left out, and the scale is multiplied by backoff_factor; after
    growth_interval steps without one it is multiplied by growth_factor.
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5,
                 growth_interval=2000, enabled=True):
        self._device, self._enabled = device, enabled
        if device == "cuda" and enabled:
            warnings.warn("GradScaler for CUDA was enabled, but there is no CUDA device: it is "
                          "disabled.", stacklevel=2)
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._scale, self._growth_tracker = init_scale, None, 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._per_optimizer_states = defaultdict(lambda: {"stage": OptState.READY, "found_inf": None})

    def _scale_tensor(self):
        if self._scale is None:
            self._scale = _C.tensor(float(self._init_scale), dtype=_C.float32)
        return self._scale

    def scale(self, outputs):
        """outputs times the scale: a tensor, or nested iterables of them."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            return outputs * self._scale_tensor()
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError(f"scale() takes a Tensor or an iterable of them, not {type(outputs).__name__}")

    @no_grad()
    def unscale_(self, optimizer):
        """Divides the gradients of an optimizer's parameters by the scale: before clipping them, say."""
        if not self._enabled:
            return
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() was already called for this optimizer; call update() before the "
                               "next time.")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = 1.0 / self._scale_tensor().double()
        finite = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.dtype is _C.float16 and p.dtype is _C.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                p.grad.mul_(inverse.to(p.grad.dtype))
                finite = finite and bool(p.grad.isfinite().all())
        state["found_inf"], state["stage"] = not finite, OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step(), unless a gradient is inf or nan. Returns what it returns, or None."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("GradScaler.step() takes no closure while the scaler is enabled.")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        result = None if state["found_inf"] else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None):
        """Sets the scale for the next iteration; call it once, after all steps."""
        if not self._enabled:
            return
        scale = self._scale_tensor()
        found = [s["found_inf"] for s in self._per_optimizer_states.values() if s["found_inf"] is not None]
        if new_scale is not None:
            scale.fill_(float(new_scale))
        elif not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(found):
            scale.mul_(self._backoff_factor)
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                grown = float(scale) * self._growth_factor
                if grown < float("inf"):
                    scale.fill_(grown)
                self._growth_tracker = 0
        self._per_optimizer_states.clear()

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
                "_growth_tracker": self._growth_tracker}

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
        self._growth_tracker = state_dict["_growth_tracker"]
