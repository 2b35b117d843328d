"""Adadelta: steps in the units of the parameter (Zeiler, 2012)."""
from .. import _C
from .rule import RuleOptimizer, check_at_least, check_rate, is_set


class Adadelta(RuleOptimizer):
    """p -= lr * delta, delta = g * rms(earlier deltas) / rms(gradients); both are moving averages by rho."""

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False,
                 maximize=False, differentiable=False):
        check_rate(lr)
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}")
        check_at_least(0, epsilon=eps, weight_decay=weight_decay)
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize,
                                      capturable=capturable, foreach=foreach, differentiable=differentiable))

    def start(self, group, p):
        return {"step": _C.tensor(0.0), "square_avg": _C.zeros_like(p), "acc_delta": _C.zeros_like(p)}

    def rule(self, p, g, state, o):
        if is_set(o.weight_decay):
            g = g + o.weight_decay * p
        square = o.rho * state["square_avg"] + (1 - o.rho) * g * g
        delta = (state["acc_delta"] + o.eps).sqrt() / (square + o.eps).sqrt() * g
        deltas = o.rho * state["acc_delta"] + (1 - o.rho) * delta * delta
        return p - o.lr * delta, {"square_avg": square, "acc_delta": deltas}
