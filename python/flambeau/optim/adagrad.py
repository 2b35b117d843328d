"""Adagrad: rates that fall with the sum of squared gradients (Duchi et al., 2011)."""
from .. import _C
from .rule import RuleOptimizer, check_at_least, check_rate, is_set, number_of


class Adagrad(RuleOptimizer):
    """p -= lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum of g * g) + eps)."""

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
                 foreach=None, *, maximize=False, differentiable=False, fused=None):
        check_rate(lr)
        check_at_least(0, lr_decay=lr_decay, weight_decay=weight_decay,
                       initial_accumulator_value=initial_accumulator_value, epsilon=eps)
        super().__init__(params, dict(lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
                                      initial_accumulator_value=initial_accumulator_value, foreach=foreach,
                                      maximize=maximize, differentiable=differentiable, fused=fused))
        for group in self.param_groups:  # here the state is there from the beginning
            for p in group["params"]:
                self.state[p] = self.start(group, p)

    def start(self, group, p):
        value = group["initial_accumulator_value"]
        return {"step": _C.tensor(0.0),
                "sum": _C.full_like(p, complex(value, value) if p.is_complex() else value)}

    def share_memory(self):
        """Moves the state to memory that other processes can share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def numbers(self, group, state):
        return {"step_size": group["lr"] / (1 + (number_of(state["step"]) - 1) * group["lr_decay"])}

    def rule(self, p, g, state, o):
        if is_set(o.weight_decay):
            g = g + o.weight_decay * p
        total = state["sum"] + g * g
        return p - o.step_size * (g / (total.sqrt() + o.eps)), {"sum": total}

    def sparse_rule(self, group, p, g, state, numbers):
        if group["weight_decay"] != 0:
            raise RuntimeError("Adagrad: sparse gradients need weight_decay=0")
        at, values = tuple(g.indices().unbind(0)), -g.values() if group["maximize"] else g.values()
        total = state["sum"][at] + values * values
        state["sum"][at] = total
        p[at] = p[at] - float(numbers["step_size"]) * (values / (total.sqrt() + group["eps"]))
