"""Draws by rejection: proposals are made for all elements, then for those that are left."""
import math

from . import _C
from ._C import Tensor
from .autograd import Function
from .overrides import dispatched, public_in

__all__ = []
_public = public_in(__all__)


def _accepted(parameters, propose):
    """One draw for each element. propose(*parameters) gives draws and which of them are good."""
    flat = [p.reshape(-1) for p in parameters]
    draws = _C.empty_like(flat[0])
    left = _C.arange(draws.numel(), device=draws.device)
    while left.numel():
        made, good = propose(*(p[left] for p in flat))
        draws[left[good]] = made[good]
        left = left[~good]
    return draws.reshape(parameters[0].shape)


def _where_large(large, draw_small, draw_large, *parameters):
    """Draws by two methods, each for its own elements."""
    out = _C.empty_like(parameters[0])
    out[large] = draw_large(*(p[large] for p in parameters))
    out[~large] = draw_small(*(p[~large] for p in parameters))
    return out


def _uniform(like, generator):
    """In (0, 1)."""
    return _C.rand(like.shape, dtype=like.dtype, device=like.device, generator=generator).clamp(min=2.0**-54)


@_public
def poisson(input, generator=None):
    """Draws of Poisson distributions of the given rates: events in one unit of time."""
    if input.numel() and bool((input < 0).any()):
        raise RuntimeError("poisson: a rate is negative")
    rates = input.detach().to(_C.float64)
    draws = _where_large(rates >= 10, lambda r: _few_events(r, generator),
                         lambda r: _many_events(r, generator), rates)
    return draws.to(input.dtype)


def _few_events(rates, generator):
    """Counts waiting times, of which 70 are more than a rate below 10 needs."""
    waits = -_uniform(rates.new_empty((70, *rates.shape)), generator).log()
    return (waits.cumsum(0) <= rates).sum(0).to(rates.dtype)


def _many_events(rates, generator):
    """Transformed rejection with squeeze, PTRS (Hoermann, 1993)."""
    def propose(rate):
        b = 0.931 + 2.53 * rate.sqrt()
        a = -0.059 + 0.02483 * b
        u, v = _uniform(rate, generator) - 0.5, _uniform(rate, generator)
        edge = 0.5 - u.abs()
        k = ((2 * a / edge + b) * u + rate + 0.43).floor()
        height = v.log() + (1.1239 + 1.1328 / (b - 3.4)).log() - (a / edge.square() + b).log()
        below = height <= k * rate.log() - rate - (k + 1).lgamma()
        inside = (k >= 0) & ((edge >= 0.013) | (v <= edge))
        return k, ((edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))) | (inside & below)

    return _accepted([rates], propose)


@_public
def binomial(count, prob, generator=None):
    """Draws of binomial distributions: successes of `count` trials, each with probability prob."""
    counts, probs = _C.broadcast_tensors([count.detach().to(_C.float64), prob.detach().to(_C.float64)])
    if counts.numel() and bool(((counts < 0) | (probs < 0) | (probs > 1)).any()):
        raise RuntimeError("binomial: expected counts of at least 0 and probabilities from 0 to 1")
    rarer = _C.minimum(probs, 1 - probs)
    draws = _where_large(counts * rarer >= 10, lambda n, p: _few_successes(n, p, generator),
                         lambda n, p: _many_successes(n, p, generator), counts, rarer)
    return _C.where(probs > 0.5, counts - draws, draws).to(count.dtype)


def _few_successes(counts, probs, generator):
    """Adds up the numbers of trials until each success: they are geometric."""
    draws, trials = _C.zeros_like(counts), _C.zeros_like(counts)
    while True:
        trials = trials + (_uniform(counts, generator).log() / (-probs).log1p()).floor() + 1
        more = trials <= counts  # a probability of 0 waits for ever
        if not bool(more.any()):
            return draws
        draws = draws + more


def _many_successes(counts, probs, generator):
    """Transformed rejection, BTRS (Hoermann, 1993)."""
    def propose(n, p):
        spread = (n * p * (1 - p)).sqrt()
        b = 1.15 + 2.53 * spread
        a = -0.0873 + 0.0248 * b + 0.01 * p
        u, v = _uniform(p, generator) - 0.5, _uniform(p, generator)
        edge = 0.5 - u.abs()
        k = ((2 * a / edge + b) * u + n * p + 0.5).floor()
        odds, mode = p / (1 - p), ((n + 1) * p).floor()
        height = (v * (2.83 + 5.1 / b) * spread / (a / edge.square() + b)).log()
        density = ((mode + 1).lgamma() + (n - mode + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()
                   + (k - mode) * odds.log())
        inside = (k >= 0) & (k <= n)
        return k, inside & (((edge >= 0.07) & (v <= 0.92 - 4.2 / b)) | (height <= density))

    return _accepted([counts, probs], propose)


class _Gamma(Function):
    """Draws of gamma distributions of rate 1, with the derivative by the shape at a fixed quantile."""

    @staticmethod
    def forward(ctx, concentration, generator):
        shapes = concentration.detach().to(_C.float64)
        draws = _accepted([_C.where(shapes < 1, shapes + 1, shapes)], lambda s: _propose_gamma(s, generator))
        small = draws * _uniform(shapes, generator) ** (1 / shapes)
        draws = _C.where(shapes < 1, small, draws).to(concentration.dtype)
        draws = draws.clamp(min=2.0**-1022 if draws.dtype is _C.float64 else 2.0**-126)
        ctx.save_for_backward(concentration, draws)
        return draws

    @staticmethod
    def backward(ctx, grad):
        return grad * _standard_gamma_grad(*ctx.saved_tensors), None


def _propose_gamma(shape, generator):
    """Marsaglia and Tsang, 2000; shape of at least 1."""
    d = shape - 1 / 3
    x = _C.randn(shape.shape, dtype=shape.dtype, device=shape.device, generator=generator)
    v = (1 + x / (9 * d).sqrt()) ** 3
    log_v = v.clamp(min=1e-300).log()
    good = (v > 0) & (_uniform(shape, generator).log() < x.square() / 2 + d - d * v + d * log_v)
    return d * v, good


@_public
def _standard_gamma(self, generator=None):
    """Draws of gamma distributions of these shapes and rate 1; differentiable."""
    if self.numel() and not bool((self.detach() > 0).all()):
        raise RuntimeError("_standard_gamma: expected shapes greater than 0")
    return _Gamma.apply(self, generator)


@_public
def _standard_gamma_grad(self, output):
    """The derivative of draws by their shapes: -(dF/da) / (dF/dx), F being the distribution function.

    dF/da is a difference of fourth order in float64.
    """
    a, x = self.detach().to(_C.float64), output.detach().to(_C.float64)
    upper = x > a  # there 1 - F is the smaller number
    unit = _C.minimum(1e-3 * a, 1e-2 * a.sqrt())

    def difference(step):
        above, below = ((_C.igamma(a + s, x), _C.igammac(a + s, x)) for s in (step, -step))
        return _C.where(upper, below[1] - above[1], above[0] - below[0]) / (2 * step)

    by_shape = (4 * difference(unit) - difference(2 * unit)) / 3
    log_density = (a - 1) * x.log() - x - a.lgamma()
    return (-by_shape * (-log_density).exp()).to(output.dtype)


@_public
def _sample_dirichlet(self, generator=None):
    """Draws of Dirichlet distributions, along the last dimension."""
    draws = _standard_gamma(self, generator)
    return draws / draws.sum(-1, keepdim=True)


Tensor._standard_gamma = dispatched(_standard_gamma, method=True)
