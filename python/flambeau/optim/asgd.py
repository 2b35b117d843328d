"""ASGD: stochastic gradient descent with an average of the parameters (Polyak and Juditsky, 1992)."""
from .. import _C
from .._C import Tensor
from .rule import RuleOptimizer, check_at_least, check_rate, is_set, number_of


class ASGD(RuleOptimizer):
    """Steps of a falling size eta; from step t0 on, state "ax" averages the parameter with weight mu."""

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None,
                 maximize=False,
                 differentiable=False, capturable=False):
        check_rate(lr)
        check_at_least(0, weight_decay=weight_decay, lambd=lambd, alpha=alpha)
        super().__init__(params, dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay,
                                      foreach=foreach, maximize=maximize, differentiable=differentiable,
                                      capturable=capturable))

    counters = ("step", "eta", "mu")

    def start(self, group, p):
        return {"step": _C.tensor(0.0), "eta": _C.tensor(float(group["lr"])), "mu": _C.tensor(1.0),
                "ax": _C.zeros_like(p)}

    def numbers(self, group, state):
        step, lr = number_of(state["step"]), float(group["lr"])
        eta, mu = number_of(state["eta"]), number_of(state["mu"])
        state["eta"].fill_(lr / (1 + group["lambd"] * lr * step) ** group["alpha"])
        averaged = step - group["t0"]
        averaged = averaged.clamp(min=1) if isinstance(averaged, Tensor) else max(1, averaged)
        state["mu"].fill_(1 / averaged)
        return {"eta": eta, "mu": mu}

    def rule(self, p, g, state, o):
        if is_set(o.weight_decay):
            g = g + o.weight_decay * p
        p = p * (1 - o.lambd * o.eta) - o.eta * g
        return p, {"ax": state["ax"] + (p - state["ax"]) * o.mu}
