"""Normal distributions of one variable."""
import math

import flambeau

from . import constraints
from .distribution import Distribution, broadcast_all
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform, StickBreakingTransform
from .univariate import Cauchy


class Normal(Distribution):
    """Mean loc, standard deviation scale."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support, has_rsample, _mean_carrier_measure = constraints.real, True, 0

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale.square()

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.loc + flambeau.randn(shape, dtype=self.loc.dtype, device=self.loc.device) * self.scale

    def log_prob(self, value):
        self._validate_sample(value)
        size = self.scale.log() + math.log(2 * math.pi) / 2
        return -(value - self.loc).square() / (2 * self.scale.square()) - size

    def cdf(self, value):
        self._validate_sample(value)
        return 0.5 * (1 + ((value - self.loc) / (self.scale * math.sqrt(2))).erf())

    def icdf(self, value):
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class _Half(Distribution):
    """The absolute value of a symmetric distribution around 0."""

    arg_constraints = {"scale": constraints.positive}
    support, has_rsample = constraints.nonnegative, True
    _of = None

    def __init__(self, scale, validate_args=None):
        self.scale, = broadcast_all(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)
        self._base = self._of(flambeau.zeros_like(self.scale), self.scale, validate_args=False)

    @property
    def mode(self):
        return flambeau.zeros_like(self.scale)

    def rsample(self, sample_shape=()):
        return self._base.rsample(sample_shape).abs()

    def log_prob(self, value):
        self._validate_sample(value)
        return flambeau.where(value >= 0, self._base.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value):
        return 2 * self._base.cdf(value) - 1

    def icdf(self, value):
        return self._base.icdf((value + 1) / 2)

    def entropy(self):
        return self._base.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a Normal with mean 0."""

    _of = Normal

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.square() * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute value of a Cauchy around 0."""

    _of = Cauchy

    @property
    def mean(self):
        return flambeau.full_like(self.scale, math.inf)

    variance = mean


class LogNormal(TransformedDistribution):
    """The exponential of a Normal."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support, has_rsample = constraints.positive, True

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(),
                         validate_args=validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)

    @property
    def mean(self):
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self):
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self):
        return self.scale.square().expm1() * (2 * self.loc + self.scale.square()).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Probabilities of n + 1 classes from n normal numbers, by StickBreakingTransform."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support, has_rsample = constraints.simplex, True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)
