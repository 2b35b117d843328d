"""SparseAdam: Adam for gradients that name few rows, as an embedding's."""
from .. import _C
from ..autograd.grad_mode import enable_grad, no_grad
from .optimizer import Optimizer
from .rule import check_betas, check_rate


class SparseAdam(Optimizer):
    """Of the averages and the parameter, only the elements that the sparse gradient has change."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_rate(lr)
        if not 0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        params = [p for group in self.param_groups for p in group["params"]]
        if any(getattr(p, "is_sparse", False) for p in params):
            raise ValueError("SparseAdam requires dense parameter tensors")
        if any(p.is_complex() for p in params):
            raise ValueError("SparseAdam does not support complex parameters")

    @no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not getattr(p.grad, "is_sparse", False):
                    raise RuntimeError("SparseAdam takes sparse gradients only; for dense gradients use Adam")
                self._update(group, p, p.grad.coalesce())
        return loss

    def _update(self, group, p, g):
        state = self.state[p]
        if not state:
            state.update(step=0, exp_avg=_C.zeros_like(p), exp_avg_sq=_C.zeros_like(p))
        state["step"] += 1
        beta1, beta2 = group["betas"]
        at, values = tuple(g.indices().unbind()), -g.values() if group["maximize"] else g.values()
        average = state["exp_avg"][at]
        square = state["exp_avg_sq"][at]
        average = average + (1 - beta1) * (values - average)
        square = square + (1 - beta2) * (values * values - square)
        state["exp_avg"][at], state["exp_avg_sq"][at] = average, square
        step_size = float(group["lr"]) * (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
        p[at] = p[at] - step_size * (average / (square.sqrt() + group["eps"]))
