"""Rprop: steps by the sign of the gradient alone (Riedmiller and Braun, 1993)."""
from .. import _C
from .rule import RuleOptimizer, check_rate


class Rprop(RuleOptimizer):
    """Every element's step grows by etas[1] while its gradient keeps the sign, and shrinks by etas[0] when it
    flips; then the element rests for a step."""

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False,
                 foreach=None,
                 maximize=False, differentiable=False):
        check_rate(lr)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params,
                         dict(lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, capturable=capturable))

    options_vary = False

    def start(self, group, p):
        rate = float(group["lr"])
        return {"step": _C.tensor(0.0), "prev": _C.zeros_like(p),
                "step_size": _C.full_like(p, complex(rate, rate) if p.is_complex() else rate)}

    def rule(self, p, g, state, o):
        (shrink, grow), (smallest, largest) = o.etas, o.step_sizes
        agreement = g * state["prev"]
        factor = _C.where(agreement > 0, grow, _C.where(agreement < 0, shrink, 1.0))
        size = (state["step_size"] * factor).clamp(smallest, largest)
        g = _C.where(agreement < 0, 0.0, g)
        return p - g.sign() * size, {"prev": g, "step_size": size}
