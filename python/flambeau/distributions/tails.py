"""Distributions given by the inverse of their distribution function."""
import math

import flambeau

from . import constraints
from .distribution import Distribution, broadcast_all

_EULER = 0.57721566490153286060


class _ByQuantile(Distribution):
    """A draw is icdf() of a uniform number."""

    has_rsample = True

    def _uniform(self, sample_shape):
        like = next(getattr(self, name) for name in self.arg_constraints)
        u = flambeau.rand(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)
        limit = flambeau.finfo(like.dtype)
        return u.clamp(min=limit.tiny, max=1 - limit.eps / 2)

    def rsample(self, sample_shape=()):
        return self.icdf(self._uniform(sample_shape))


class Weibull(_ByQuantile):
    """Distribution function 1 - exp(-(x / scale)^concentration)."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def _moment(self, n):
        return (1 + n / self.concentration).lgamma().exp()

    @property
    def mean(self):
        return self.scale * self._moment(1)

    @property
    def mode(self):
        k = self.concentration
        return flambeau.where(k > 1, self.scale * ((k - 1).clamp(min=0) / k) ** (1 / k), 0.0)

    @property
    def variance(self):
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    def log_prob(self, value):
        self._validate_sample(value)
        k, x = self.concentration, value / self.scale
        return (k / self.scale).log() + (k - 1) * x.log() - x**k

    def cdf(self, value):
        self._validate_sample(value)
        return -(-((value / self.scale) ** self.concentration)).expm1()

    def icdf(self, value):
        return self.scale * (-(-value).log1p()) ** (1 / self.concentration)

    def entropy(self):
        return _EULER * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1


class Pareto(_ByQuantile):
    """Distribution function 1 - (scale / x)^alpha, from scale on."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self):
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self):
        return self.scale

    @property
    def variance(self):
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def log_prob(self, value):
        self._validate_sample(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def cdf(self, value):
        self._validate_sample(value)
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value):
        return self.scale * (1 - value) ** (-1 / self.alpha)

    def entropy(self):
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha


class GeneralizedPareto(_ByQuantile):
    """Distribution function 1 - (1 + c (x - loc) / scale)^(-1 / c), c being the concentration."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive,
                       "concentration": constraints.real}

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, flambeau.where(self.concentration < 0, end, math.inf))

    def _log_tail(self, value):
        """log(1 - cdf)."""
        x, c = (value - self.loc) / self.scale, self.concentration
        safe = flambeau.where(c == 0, 1.0, c)
        return flambeau.where(c == 0, -x, -(safe * x).log1p() / safe)

    @property
    def mean(self):
        c = self.concentration
        return flambeau.where(c < 1, self.loc + self.scale / (1 - c), math.inf)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        c = self.concentration
        return flambeau.where(c < 0.5, self.scale.square() / ((1 - c).square() * (1 - 2 * c)), math.inf)

    def log_prob(self, value):
        self._validate_sample(value)
        return (1 + self.concentration) * self._log_tail(value) - self.scale.log()

    def cdf(self, value):
        self._validate_sample(value)
        return -self._log_tail(value).expm1()

    def icdf(self, value):
        log_tail, c = (-value).log1p(), self.concentration
        safe = flambeau.where(c == 0, 1.0, c)
        return self.loc + self.scale * flambeau.where(c == 0, -log_tail, (-safe * log_tail).expm1() / safe)

    def entropy(self):
        return self.scale.log() + self.concentration + 1


class Kumaraswamy(_ByQuantile):
    """Distribution function 1 - (1 - x^a)^b, a being concentration1 and b concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def _moment(self, n):
        a, b = self.concentration1, self.concentration0
        return (b.log() + (1 + n / a).lgamma() + b.lgamma() - (1 + n / a + b).lgamma()).exp()

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** (1 / a)
        return flambeau.where((a < 1) | (b < 1), math.nan, mode)

    @property
    def variance(self):
        return self._moment(2) - self._moment(1).square()

    def log_prob(self, value):
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return a.log() + b.log() + (a - 1) * value.log() + (b - 1) * (-(value**a)).log1p()

    def cdf(self, value):
        self._validate_sample(value)
        return 1 - (1 - value**self.concentration1) ** self.concentration0

    def icdf(self, value):
        return (-((-value).log1p() / self.concentration0).expm1()) ** (1 / self.concentration1)

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        return 1 - 1 / b + (1 - 1 / a) * ((b + 1).digamma() + _EULER) - a.log() - b.log()
