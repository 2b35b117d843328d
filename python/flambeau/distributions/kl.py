"""Kullback-Leibler divergences, by pairs of types."""
import math

import flambeau

from .bernoulli import Bernoulli
from .categorical import Categorical, OneHotCategorical
from .continuous_bernoulli import ContinuousBernoulli
from .counts import Binomial
from .gammas import Beta, Dirichlet, Gamma, InverseGamma
from .independent import Independent
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .matrices import Wishart
from .multivariate_normal import MultivariateNormal, _inverse_of_lower
from .normal import HalfCauchy, HalfNormal, Normal
from .tails import Pareto
from .transformed_distribution import TransformedDistribution
from .univariate import Cauchy, Exponential, Geometric, Gumbel, Laplace, Poisson, Uniform

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


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    return (b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma()
            + (q.rate - p.rate) * a / p.rate)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p, q):
    return _gamma(Gamma(flambeau.ones_like(p.rate), p.rate, validate_args=False), q)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p, q):
    return _gamma(p, Gamma(flambeau.ones_like(q.rate), q.rate, validate_args=False))


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    weights = ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)
    return total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1) + weights


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet(), q._dirichlet())


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("the divergence of Binomials where q has the larger total_count")
    divergence = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return flambeau.where(p.total_count > q.total_count, float("inf"), divergence)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    return (p.mean * (p.logits - q.logits) + p._log_size() + (-p.probs).log1p() - q._log_size()
            - (-q.probs).log1p())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p._base, q._base)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    apart = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return apart.log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, off = p.scale / q.scale, (p.loc - q.loc) / q.scale
    euler = 0.57721566490153286060
    return (off - ratio.log() + ratio * euler + (-off + (ratio + 1).lgamma()).exp() - (1 + euler))


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    divergence = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return flambeau.where(p.scale < q.scale, float("inf"), divergence)


@register_kl(InverseGamma, InverseGamma)
def _inverse_gamma(p, q):
    return _gamma(*(Gamma(d.concentration, d.rate, validate_args=False) for d in (p, q)))


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p, q):
    return _cauchy(p._base, q._base)


# Where the logarithm of q's density is a polynomial, p's moments are all that is needed.
@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p, q):
    spread = q.scale.square()
    return (-p.entropy() + 0.5 * (2 * math.pi * spread).log()
            + (p.variance + (p.mean - q.loc).square()) / (2 * spread))


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Pareto, Exponential)
def _to_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p, q):
    a, b, c = p.concentration1, p.concentration0, q.concentration
    log_x = a.digamma() - (a + b).digamma()
    return -p.entropy() - c * q.rate.log() + c.lgamma() - (c - 1) * log_x + q.rate * p.mean


def _infinite(p, q):
    """Where p draws values that q does not."""
    return flambeau.full_like(p.mean, math.inf)


for _p, _kinds in {
        Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
        Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
        Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
        Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
        Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform), Beta: (Pareto,), ContinuousBernoulli: (Pareto,),
        Pareto: (Beta, ContinuousBernoulli, Uniform), Poisson: (Bernoulli, Binomial)}.items():
    for _q in _kinds:
        register_kl(_p, _q)(_infinite)


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    ratio, off = p.scale / q.scale, (p.loc - q.loc) / p.scale
    far = math.sqrt(2 / math.pi) * ratio * (-0.5 * off.square()).exp()
    near = ratio * off * (off * math.sqrt(0.5)).erf()
    return -ratio.log() + far + near - 0.5 * math.log(0.5 * math.pi) - 0.5


def _full(d):
    """A normal distribution of vectors with its covariance's root."""
    return MultivariateNormal(d.loc, scale_tril=d.scale_tril, validate_args=False)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p, q):
    return _multivariate_normal(_full(p), _full(q))


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    inverse = _inverse_of_lower(q._root)
    spread = (inverse @ p._root).square().sum((-2, -1))
    off = (inverse @ (q.loc - p.loc).unsqueeze(-1)).square().sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (spread + off - p.event_shape[0])


@register_kl(Wishart, Wishart)
def _wishart(p, q):
    rows = p.event_shape[0]
    spread = (_inverse_of_lower(q._root) @ p._root).square().sum((-2, -1))
    return (0.5 * q.df * (q._log_det() - p._log_det()) + 0.5 * p.df * (spread - rows)
            + (0.5 * q.df).mvlgamma(rows) - (0.5 * p.df).mvlgamma(rows)
            + 0.5 * (p.df - q.df) * p._digammas())


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
