"""RAdam: Adam that waits until its average of squares can be trusted (Liu et al., 2019)."""
from .. import _C
from .._C import Tensor
from .rule import RuleOptimizer, check_at_least, check_betas, check_rate, is_set, number_of


class RAdam(RuleOptimizer):
    """While the variance of the adaptive rate is unknown (about 5 steps), plain momentum; then Adam,
    rectified.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0,
                 decoupled_weight_decay=False, *,
                 foreach=None, maximize=False, capturable=False, differentiable=False):
        check_rate(lr)
        check_at_least(0, epsilon=eps)
        check_betas(betas)
        check_at_least(0, weight_decay=weight_decay)
        super().__init__(params,
                         dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize,
                                      foreach=foreach, capturable=capturable,
                                      decoupled_weight_decay=decoupled_weight_decay,
                                      differentiable=differentiable))

    def start(self, group, p):
        return {"step": _C.tensor(0.0), "exp_avg": _C.zeros_like(p), "exp_avg_sq": _C.zeros_like(p)}

    def numbers(self, group, state):
        step, (beta1, beta2) = number_of(state["step"]), group["betas"]
        step_size, correction = group["lr"] / (1 - beta1**step), 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / correction  # of the average of squares, in steps
        rectified = length > 5
        if rectified is False:
            return {"rectified": False, "step_size": step_size}
        variance = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        size = step_size * (variance * correction) ** 0.5
        if isinstance(rectified, Tensor):
            size = _C.where(rectified, size, step_size)
        return {"rectified": rectified, "step_size": size}

    def rule(self, p, g, state, o):
        beta1, beta2 = o.betas
        if is_set(o.weight_decay):
            if o.decoupled_weight_decay:
                p = p * (1 - o.lr * o.weight_decay)
            else:
                g = g + o.weight_decay * p
        average = state["exp_avg"] + (1 - beta1) * (g - state["exp_avg"])
        square = beta2 * state["exp_avg_sq"] + (1 - beta2) * g * g
        direction = average
        if isinstance(o.rectified, Tensor):
            direction = _C.where(o.rectified, average / (square.sqrt() + o.eps), average)
        elif o.rectified:
            direction = average / (square.sqrt() + o.eps)
        return p - o.step_size * direction, {"exp_avg": average, "exp_avg_sq": square}
