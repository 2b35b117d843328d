"""Adam and AdamW."""
from .. import _C
from .._C import Tensor
from .rule import RuleOptimizer, check_at_least, check_betas, check_rate, is_set, number_of


class Adam(RuleOptimizer):
    """Moving averages of the gradient and of its square; p -= lr * average / sqrt(average of squares).

    Kingma and Ba, 2014; amsgrad: Reddi et al., 2018. decoupled_weight_decay makes it AdamW.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *,
                 foreach=None, maximize=False, capturable=False, differentiable=False, fused=None,
                 decoupled_weight_decay=False):
        check_rate(lr, foreach, capturable)
        check_at_least(0, epsilon=eps)
        _check_kinds(betas, foreach, capturable)
        check_betas(betas)
        check_at_least(0, weight_decay=weight_decay)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad,
                                      maximize=maximize, foreach=foreach, capturable=capturable,
                                      differentiable=differentiable, fused=fused,
                                      decoupled_weight_decay=decoupled_weight_decay))

    def start(self, group, p):
        step = _C.zeros((), device=p.device) if group["capturable"] else _C.tensor(0.0)
        state = {"step": step, "exp_avg": _C.zeros_like(p), "exp_avg_sq": _C.zeros_like(p)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = _C.zeros_like(p)
        return state

    def numbers(self, group, state):
        step, (beta1, beta2) = state["step"], group["betas"]
        if not step.is_cuda:
            step = number_of(step)
        else:
            beta1, beta2 = (b.float() if isinstance(b, Tensor) else b for b in (beta1, beta2))
        return {"step_size": group["lr"] / (1 - beta1**step), "root": (1 - beta2**step) ** 0.5}

    def rule(self, p, g, state, o):
        beta1, beta2 = o.betas
        if is_set(o.weight_decay):
            if o.decoupled_weight_decay:
                p = p * (1 - o.lr * o.weight_decay)
            else:
                g = g + o.weight_decay * p
        average = state["exp_avg"] + (1 - beta1) * (g - state["exp_avg"])
        square = beta2 * state["exp_avg_sq"] + (1 - beta2) * g * g
        changed = {"exp_avg": average, "exp_avg_sq": square}
        if o.amsgrad:
            changed["max_exp_avg_sq"] = square = _C.maximum(state["max_exp_avg_sq"], square)
        return p - o.step_size * (average / (square.sqrt() / o.root + o.eps)), changed


def _check_kinds(betas, foreach, capturable):
    kinds = [isinstance(beta, Tensor) for beta in betas]
    if any(kinds) and not all(kinds):
        raise ValueError("betas must be either both floats or both Tensors")
    for index, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            if foreach and not capturable:
                raise ValueError(f"betas[{index}] is a Tensor: with foreach=True this needs capturable=True")
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{index}] must be 1-element")


class AdamW(Adam):
    """Adam, weight decay apart from the gradient: p *= 1 - lr * weight_decay (Loshchilov, Hutter, 2017)."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
                 maximize=False, foreach=None, capturable=False, differentiable=False, fused=None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
