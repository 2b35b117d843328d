"""Kullback-Leibler divergences, by pairs of types."""
import flambeau

from .bernoulli import Bernoulli
from .categorical import Categorical, OneHotCategorical
from .independent import Independent
from .multivariate_normal import MultivariateNormal, _inverse_of_lower
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .univariate import Exponential, Laplace, Poisson, Uniform

_formulas = {}


def register_kl(type_p, type_q):
    """A decorator: the function (p, q) gives the divergence of these types and their subclasses."""
    def register(formula):
        _formulas[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p, q):
    """KL(p || q) = E_p[log p - log q]."""
    best = None
    for (kind_p, kind_q), formula in _formulas.items():
        if isinstance(p, kind_p) and isinstance(q, kind_q):
            distance = type(p).__mro__.index(kind_p) + type(q).__mro__.index(kind_q)
            if best is None or distance < best[0]:
                best = distance, formula
    if best is None:
        raise NotImplementedError(f"No KL divergence from {type(q).__name__} (q) to {type(p).__name__} (p) "
                                  "is known; add one with register_kl")
    return best[1](p, q)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    log_p, log_q = (flambeau.softplus(d.logits) for d in (p, q))
    return p.probs * (p.logits - q.logits) - log_p + log_q


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = flambeau.where(q.probs == 0, float("inf"), terms)
    return flambeau.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return flambeau.where((q.low > p.low) | (q.high < p.high), float("inf"), result)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    off = (p.loc - q.loc).abs()
    return -(p.scale / q.scale).log() + off / q.scale + p.scale / q.scale * (-off / p.scale).exp() - 1


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    inverse = _inverse_of_lower(q._root)
    spread = (inverse @ p._root).square().sum((-2, -1))
    off = (inverse @ (q.loc - p.loc).unsqueeze(-1)).square().sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (spread + off - p.event_shape[0])


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("the divergence of Independents with different numbers of dimensions")
    return p._summed(kl_divergence(p.base_dist, q.base_dist))


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if [type(t) for t in p.transforms] != [type(t) for t in q.transforms] or p.event_shape != q.event_shape:
        raise NotImplementedError("the divergence of distributions with different transforms")
    return kl_divergence(p.base_dist, q.base_dist)
