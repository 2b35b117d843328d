"""L-BFGS: Newton's method with curvature from the last steps (Nocedal and Wright, Numerical Optimization, ch.
7).
"""
from typing import NamedTuple

from .. import _C
from .._C import Tensor
from ..autograd.grad_mode import enable_grad, no_grad
from .optimizer import Optimizer
from .rule import check_rate


class LBFGS(Optimizer):
    """A step makes up to max_iter iterations, and calls closure() up to max_eval times.

    The parameters must be in one group. line_search_fn: None, a step of size lr; "strong_wolfe", a search for
    one that meets Wolfe's strong conditions.
    """

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,
                 history_size=100, line_search_fn=None, *, maximize=False):
        check_rate(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, dict(
            lr=lr, max_iter=max_iter, max_eval=max_eval, tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change, history_size=history_size, line_search_fn=line_search_fn,
            maximize=maximize))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state):
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    @no_grad()
    def step(self, closure):
        """Returns the loss of the first call of closure()."""
        group, state = self.param_groups[0], self.state[self._params[0]]
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported as line_search_fn")
        lr = group["lr"].item() if isinstance(group["lr"], Tensor) else group["lr"]
        max_iter, change = group["max_iter"], group["tolerance_change"]
        sign = -1 if group["maximize"] else 1

        def evaluate():
            with enable_grad():
                loss = closure()
            return loss, sign * float(loss)

        first, loss = evaluate()
        g = self._gradient()
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        state["func_evals"] += 1
        if _largest(g) <= group["tolerance_grad"]:
            return first
        d, t, earlier_g, earlier_loss = (state.get(k) for k in ("d", "t", "prev_flat_grad", "prev_loss"))
        history = _History(state, group["history_size"])
        evaluations = 1
        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                history.clear()
                d = -g
            else:
                history.add(g - earlier_g, d * t)
                d = history.direction(g)
            earlier_g, earlier_loss = g.clone(), loss
            t = min(1.0, 1.0 / g.abs().sum().item()) * lr if state["n_iter"] == 1 else lr
            slope = g.dot(d).item()
            if slope > -change:
                break
            calls = 0
            if search:
                start = [p.clone() for p in self._params]

                def along(t):
                    self._move(t, d)
                    value = evaluate()[1]
                    gradient = self._gradient()
                    for p, q in zip(self._params, start):
                        p.copy_(q)
                    return _Point(t, value, gradient, gradient.dot(d).item())

                best, calls = strong_wolfe(along, _Point(0, loss, g, slope), t, _largest(d))
                t, loss, g = best.t, best.value, best.gradient
                self._move(t, d)
            else:
                self._move(t, d)
                if iteration != max_iter:  # else nobody asks
                    loss, g, calls = evaluate()[1], self._gradient(), 1
            evaluations += calls
            state["func_evals"] += calls
            if (evaluations >= group["max_eval"] or _largest(g) <= group["tolerance_grad"] or
                    _largest(d * t) <= change or abs(loss - earlier_loss) < change):
                break
        if isinstance(group["lr"], Tensor) and not search:
            t = group["lr"] if t == lr else _C.full_like(group["lr"], t)
        state.update(d=d, t=t)
        history.save(state)
        state.update(prev_flat_grad=earlier_g, prev_loss=earlier_loss)
        return first

    def _gradient(self):
        """The gradients of all parameters in a row; zeros where there is none."""
        parts = []
        for p in self._params:
            g = _C.zeros_like(p) if p.grad is None else p.grad
            if getattr(g, "is_sparse", False):
                g = g.to_dense()
            parts.append((_C.view_as_real(g) if g.is_complex() else g).reshape(-1))
        flat = _C.cat(parts)
        return -flat if self.param_groups[0]["maximize"] else flat

    def _move(self, t, d):
        """Adds t * d to the parameters."""
        at = 0
        for p in self._params:
            real = _C.view_as_real(p) if p.is_complex() else p
            real.add_(d[at:at + real.numel()].view(real.shape), alpha=t)
            at += real.numel()


def _largest(x):
    return x.abs().max().item()


class _History:
    """The last changes of the gradient (y) and of the parameters (s), and the direction that they give."""

    def __init__(self, state, size):
        self.size, self.state = size, state
        self.y, self.s, self.ro = (state.get(k) for k in ("old_dirs", "old_stps", "ro"))
        self.scale, self.al = state.get("H_diag", 1), state.get("al")

    def clear(self):
        self.y, self.s, self.ro, self.scale = [], [], [], 1

    def add(self, y, s):
        ys = y.dot(s)
        if not ys.item() > 1e-10:  # nor where it is nan
            return
        if len(self.y) == self.size:
            for entries in (self.y, self.s, self.ro):
                entries.pop(0)
        self.y.append(y)
        self.s.append(s)
        self.ro.append(1.0 / ys)
        self.scale = ys / y.dot(y)

    def direction(self, g):
        """Minus the inverse Hessian times g, by the two-loop recursion."""
        if self.al is None:
            self.al = self.state["al"] = [None] * self.size
        q = -g
        for i in reversed(range(len(self.y))):
            self.al[i] = self.s[i].dot(q) * self.ro[i]
            q = q - self.al[i] * self.y[i]
        r = q * self.scale
        for i in range(len(self.y)):
            r = r + self.s[i] * (self.al[i] - self.y[i].dot(r) * self.ro[i])
        return r

    def save(self, state):
        state.update(old_dirs=self.y, old_stps=self.s, ro=self.ro, H_diag=self.scale)


class _Point(NamedTuple):
    """On a line: how far along, the value there, the gradient, and its component along the line."""
    t: float
    value: float
    gradient: Tensor
    slope: float


def minimum_of_cubic(a, b, bounds=None):
    """Where the cubic through two points with their slopes is least, within bounds (default: between them).
    """
    low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = square**0.5
    if a.t > b.t:
        a, b = b, a
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(t, low), high)


def strong_wolfe(along, start, t, d_size, c1=1e-4, c2=0.9, least_change=1e-9, max_search=25):
    """A point that meets Wolfe's strong conditions, or the best found, and how often along() was called.

    along(t): the point at t. start: the one at 0. d_size: the largest component of the direction.
    """
    def too_high(p):
        return p.value > start.value + c1 * p.t * start.slope

    def flat_enough(p):
        return abs(p.slope) <= -c2 * start.slope

    earlier, now, calls, searched = start, along(t), 1, 0
    while searched < max_search:  # until a minimum is between two points
        rises = searched > 1 and now.value >= earlier.value
        if too_high(now) or rises or now.slope >= 0 or flat_enough(now):
            break
        t = minimum_of_cubic(earlier, now, (now.t + 0.01 * (now.t - earlier.t), now.t * 10))
        earlier, now = now, along(t)
        calls += 1
        searched += 1
    else:
        earlier = start
    if searched < max_search and flat_enough(now) and not too_high(now) and not (
            searched > 1 and now.value >= earlier.value):
        return now, calls
    bracket = [earlier, now]
    low = 0 if bracket[0].value <= bracket[1].value else 1
    stuck = False
    while searched < max_search:
        if abs(bracket[1].t - bracket[0].t) * d_size < least_change:
            break
        t = minimum_of_cubic(*bracket)
        left, right = sorted(p.t for p in bracket)
        margin = 0.1 * (right - left)
        close = min(right - t, t - left) < margin
        if close and (stuck or t >= right or t <= left):  # not twice so close to an end
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            stuck = False
        else:
            stuck = close
        now = along(t)
        calls += 1
        searched += 1
        if too_high(now) or now.value >= bracket[low].value:
            bracket[1 - low] = now
            low = 0 if bracket[0].value <= bracket[1].value else 1
            continue
        found = flat_enough(now)
        if not found and now.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = now
        if found:
            break
    return bracket[low], calls
