"""NAdam: Adam with Nesterov momentum (Dozat, 2016)."""
from .. import _C
from .rule import RuleOptimizer, check_at_least, check_betas, check_rate, is_set, number_of


class NAdam(RuleOptimizer):
    """Adam whose step looks ahead along the average, by a momentum that grows with the steps."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
                 decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False,
                 differentiable=False):
        check_rate(lr)
        check_at_least(0, epsilon=eps)
        check_betas(betas)
        check_at_least(0, weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                      momentum_decay=momentum_decay,
                                      decoupled_weight_decay=decoupled_weight_decay,
                                      maximize=maximize, foreach=foreach, capturable=capturable,
                                      differentiable=differentiable))

    counters = ("step", "mu_product")

    def start(self, group, p):
        return {"step": _C.tensor(0.0), "mu_product": _C.tensor(1.0), "exp_avg": _C.zeros_like(p),
                "exp_avg_sq": _C.zeros_like(p)}

    def numbers(self, group, state):
        step, lr, (beta1, beta2) = number_of(state["step"]), group["lr"], group["betas"]
        momentum = [beta1 * (1 - 0.5 * 0.96 ** (s * group["momentum_decay"])) for s in (step, step + 1)]
        state["mu_product"] *= momentum[0]
        product = number_of(state["mu_product"])
        return {"gradient_size": lr * (1 - momentum[0]) / (1 - product),
                "average_size": lr * momentum[1] / (1 - product * momentum[1]),
                "root": (1 - beta2**step) ** 0.5}

    def rule(self, p, g, state, o):
        beta1, beta2 = o.betas
        if is_set(o.weight_decay):
            if o.decoupled_weight_decay:
                p = p * (1 - o.lr * o.weight_decay)
            else:
                g = g + o.weight_decay * p
        average = state["exp_avg"] + (1 - beta1) * (g - state["exp_avg"])
        square = beta2 * state["exp_avg_sq"] + (1 - beta2) * g * g
        denominator = square.sqrt() / o.root + o.eps
        p = p - o.gradient_size * (g / denominator) - o.average_size * (average / denominator)
        return p, {"exp_avg": average, "exp_avg_sq": square}
