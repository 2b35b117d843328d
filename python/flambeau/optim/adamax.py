"""Adamax: Adam with the largest recent gradient in place of the average of squares (Kingma and Ba, 2014)."""
from .. import _C
from .rule import RuleOptimizer, check_at_least, check_betas, check_rate, is_set, number_of


class Adamax(RuleOptimizer):
    """p -= lr * average / max(beta2 * norm, |g| + eps)."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *,
                 maximize=False,
                 differentiable=False, capturable=False):
        check_rate(lr)
        check_at_least(0, epsilon=eps)
        check_betas(betas)
        check_at_least(0, weight_decay=weight_decay)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach,
                                      maximize=maximize, differentiable=differentiable,
                                      capturable=capturable))

    def start(self, group, p):
        return {"step": _C.tensor(0.0), "exp_avg": _C.zeros_like(p), "exp_inf": _C.zeros_like(p)}

    def numbers(self, group, state):
        return {"step_size": group["lr"] / (1 - group["betas"][0] ** number_of(state["step"]))}

    def rule(self, p, g, state, o):
        beta1, beta2 = o.betas
        if is_set(o.weight_decay):
            g = g + o.weight_decay * p
        average = state["exp_avg"] + (1 - beta1) * (g - state["exp_avg"])
        norm = _C.maximum(state["exp_inf"] * beta2, g.abs() + o.eps)
        norm = self.kept(state, "exp_inf", norm, o)
        return _C.addcdiv(p, -o.step_size * average, norm), {"exp_avg": average, "exp_inf": norm}
