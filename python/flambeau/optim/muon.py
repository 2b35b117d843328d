"""Muon: momentum whose matrix is made orthogonal (Jordan et al., 2024; Moonlight: Liu et al., 2025)."""
from .. import _C
from .rule import RuleOptimizer, check_at_least, check_rate


class Muon(RuleOptimizer):
    """For matrices: p -= lr * orthogonal(momentum). Newton and Schulz's iteration, in bfloat16, drives the
    singular values towards 1 by the polynomial a x + b x^3 + c x^5."""

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
                 ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None):
        check_rate(lr)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw", "spectral_unclamped"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        check_at_least(0, momentum=momentum, weight_decay=weight_decay)
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
                                      ns_coefficients=ns_coefficients, eps=eps, ns_steps=ns_steps,
                                      adjust_lr_fn=adjust_lr_fn))

    options_vary = False

    def _check_params(self, group):
        super()._check_params(group)
        for p in group["params"]:
            if p.dim() != 2:
                raise ValueError(f"Muon is for matrices; a parameter has shape {p.shape}")

    def start(self, group, p):
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": _C.zeros_like(p)}

    def rule(self, p, g, state, o):
        average = state["momentum_buffer"].lerp(g, 1 - o.momentum)
        direction = g.lerp(average, o.momentum) if o.nesterov else average
        rows, columns = p.shape
        if o.adjust_lr_fn == "match_rms_adamw":
            rate = o.lr * (0.2 * max(rows, columns) ** 0.5)
        elif o.adjust_lr_fn == "spectral_unclamped":
            rate = o.lr * (rows / columns) ** 0.5
        else:
            rate = o.lr * max(1, rows / columns) ** 0.5
        step = orthogonal(direction, o.ns_coefficients, o.ns_steps, o.eps)
        return p * (1 - o.lr * o.weight_decay) - rate * step.to(p.dtype), {"momentum_buffer": average}


def orthogonal(matrix, coefficients, steps, eps):
    """Nearly U V^T of the matrix's singular value decomposition, in bfloat16."""
    if steps >= 100:
        raise ValueError(f"Number of steps must be less than 100, got {steps}")
    if len(coefficients) != 3:
        raise ValueError(f"Coefficients must be a tuple of exactly 3 values, got {len(coefficients)}")
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.bfloat16()
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = _sum(a, x, 1, _sum(b, gram, c, gram, gram), x)
    return x.T if tall else x


def _sum(beta, x, alpha, left, right):
    """beta * x + alpha * (left @ right), rounded once."""
    return _C.addmm(x.float(), left.float(), right.float(), beta=beta, alpha=alpha).bfloat16()
