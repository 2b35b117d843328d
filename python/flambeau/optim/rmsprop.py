"""RMSprop (Hinton's lecture notes, 2012; centered: Graves, 2013)."""
from .. import _C
from .rule import RuleOptimizer, check_at_least, check_rate, is_set


class RMSprop(RuleOptimizer):
    """p -= lr * g / (sqrt(average of g * g) + eps); centered subtracts the square of the average gradient."""

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
                 capturable=False, foreach=None, maximize=False, differentiable=False):
        check_rate(lr)
        check_at_least(0, epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, dict(lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered,
                                      weight_decay=weight_decay, capturable=capturable, foreach=foreach,
                                      maximize=maximize, differentiable=differentiable))

    def start(self, group, p):
        state = {"step": _C.tensor(0.0), "square_avg": _C.zeros_like(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = _C.zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = _C.zeros_like(p)
        return state

    def rule(self, p, g, state, o):
        if is_set(o.weight_decay):
            g = g + o.weight_decay * p
        square = o.alpha * state["square_avg"] + (1 - o.alpha) * g * g
        changed, variance = {"square_avg": square}, square
        if o.centered:
            average = state["grad_avg"] + (1 - o.alpha) * (g - state["grad_avg"])
            changed["grad_avg"] = average = self.kept(state, "grad_avg", average, o)
            variance = square - average * average
        step = g / (variance.sqrt() + o.eps)
        if is_set(o.momentum):
            changed["momentum_buffer"] = step = o.momentum * state["momentum_buffer"] + step
        return p - o.lr * step, changed
