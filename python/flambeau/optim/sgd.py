"""Stochastic gradient descent."""
from .rule import RuleOptimizer, check_at_least, check_rate, is_set


class SGD(RuleOptimizer):
    """p -= lr * g; with momentum, g is a running sum of gradients: buffer = momentum * buffer + (1 -
    dampening) * g.
    """

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
                 maximize=False,
                 foreach=None, differentiable=False, fused=None):
        check_rate(lr)
        check_at_least(0, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params,
                         dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
                                      nesterov=nesterov, maximize=maximize, foreach=foreach,
                                      differentiable=differentiable, fused=fused))

    def rule(self, p, g, state, o):
        if is_set(o.weight_decay):
            g = g + o.weight_decay * p
        changed = {}
        if is_set(o.momentum):
            if "momentum_buffer" in state:
                buffer = o.momentum * state["momentum_buffer"] + (1 - o.dampening) * g
            else:
                buffer = g.detach().clone()  # as in PyTorch, in a differentiable step too
            changed["momentum_buffer"] = buffer
            g = g + o.momentum * buffer if o.nesterov else buffer
        return p - o.lr * g, changed

    def sparse_rule(self, group, p, g, state, numbers):
        if group["momentum"] != 0 or group["weight_decay"] != 0:
            raise RuntimeError("SGD supports sparse gradients without momentum and weight decay only")
        at, rate = tuple(g.indices().unbind(0)), float(group["lr"])
        p[at] = p[at] - (-rate if group["maximize"] else rate) * g.values()
