"""Adafactor: Adam's squares as an outer product of rows and columns (Shazeer and Stern, 2018)."""
from .. import _C
from .._C import Tensor
from .rule import RuleOptimizer, check_rate, is_set, number_of


class Adafactor(RuleOptimizer):
    """Of a matrix's squared gradients only the averages of rows and columns are kept; steps are relative to
    the parameter's size, and clipped where their root mean square exceeds d."""

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *,
                 foreach=None,
                 maximize=False):
        check_rate(lr)
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay,
                                      foreach=foreach, maximize=maximize))

    options_vary = False

    def start(self, group, p):
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if p.dim() < 2:
            return {"step": _C.tensor(0.0), "variance": _C.zeros_like(p)}
        return {"step": _C.tensor(0.0), "row_var": p.new_zeros((*p.shape[:-1], 1)),
                "col_var": p.new_zeros((*p.shape[:-2], 1, p.shape[-1]))}

    def numbers(self, group, state):
        step = number_of(state["step"])
        relative, most = step**-0.5, float(group["lr"])
        relative = relative.clamp(max=most) if isinstance(relative, Tensor) else min(most, relative)
        return {"keep": step ** group["beta2_decay"], "relative": relative}

    def rule(self, p, g, state, o):
        eps = _EPS[p.dtype] if o.eps[0] is None else o.eps[0]
        size = _rms(p).clamp(min=o.eps[1]) * o.relative
        if is_set(o.weight_decay):
            p = p * (1 - o.lr * o.weight_decay)
        squares, changed = g * g, {}

        def average(name, new):
            changed[name] = state[name] + (new - state[name]) * o.keep
            return changed[name]

        if p.dim() > 1:
            rows = average("row_var", squares.mean(-1, keepdim=True))
            columns = average("col_var", squares.mean(-2, keepdim=True))
            variance = rows * columns / rows.mean(-2, keepdim=True).clamp(min=eps)
        else:
            variance = average("variance", squares)
        update = g * variance.clamp(min=eps * eps).rsqrt()
        return p - size / (_rms(update) / o.d).clamp(min=1.0) * update, changed


_EPS = {_C.float64: 2.0**-52, _C.float32: 2.0**-23, _C.float16: 2.0**-10, _C.bfloat16: 2.0**-7}


def _rms(x):
    return x.square().mean().sqrt()
