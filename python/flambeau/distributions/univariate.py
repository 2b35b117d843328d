"""Distributions of one variable that need a few lines each."""
import math

import flambeau

from . import constraints
from .distribution import Distribution, broadcast_all
from .success import SuccessDistribution
from .utils import clamp_probs


def _uniform(distribution, sample_shape, like):
    """Numbers in (0, 1)."""
    u = flambeau.rand(distribution._extended_shape(sample_shape), dtype=like.dtype, device=like.device)
    return u.clamp(min=flambeau.finfo(like.dtype).tiny)


class Uniform(Distribution):
    """Between low and high."""

    arg_constraints = {"low": constraints.dependent, "high": constraints.dependent}
    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise ValueError("Uniform is not defined when low>= high")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def variance(self):
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape=()):
        u = flambeau.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value):
        self._validate_sample(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value):
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return (self.high - self.low).log()


class Exponential(Distribution):
    """Waiting times at a rate."""

    arg_constraints = {"rate": constraints.positive}
    support, has_rsample = constraints.nonnegative, True

    def __init__(self, rate, validate_args=None):
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.rate.reciprocal()

    stddev = mean

    @property
    def mode(self):
        return flambeau.zeros_like(self.rate)

    @property
    def variance(self):
        return self.rate.square().reciprocal()

    def rsample(self, sample_shape=()):
        return -_uniform(self, sample_shape, self.rate).log() / self.rate

    def log_prob(self, value):
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        return -(-self.rate * value).expm1()

    def icdf(self, value):
        return -(-value).log1p() / self.rate

    def entropy(self):
        return 1.0 - self.rate.log()


class _LocationScale(Distribution):
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support, has_rsample = constraints.real, True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mode(self):
        return self.loc

    def rsample(self, sample_shape=()):
        return self.icdf(_uniform(self, sample_shape, self.loc))


class Laplace(_LocationScale):
    """Density exp(-|x - loc| / scale) / (2 scale)."""

    @property
    def mean(self):
        return self.loc

    @property
    def variance(self):
        return 2 * self.scale.square()

    def log_prob(self, value):
        self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value):
        off = value - self.loc
        return 0.5 - 0.5 * off.sign() * (-off.abs() / self.scale).expm1()

    def icdf(self, value):
        off = value - 0.5
        return (self.loc - self.scale * off.sign()
                * (-2 * off.abs()).clamp(min=-1 + flambeau.finfo(off.dtype).eps).log1p())

    def entropy(self):
        return 1 + (2 * self.scale).log()


class Cauchy(_LocationScale):
    """Density 1 / (pi scale (1 + ((x - loc) / scale)^2)): without a mean."""

    @property
    def mean(self):
        return flambeau.full_like(self.loc, math.nan)

    @property
    def variance(self):
        return flambeau.full_like(self.loc, math.inf)

    def log_prob(self, value):
        self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).square().log1p()

    def cdf(self, value):
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value):
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_LocationScale):
    """The largest of many draws."""

    @property
    def mean(self):
        return self.loc + self.scale * 0.57721566490153286060

    @property
    def variance(self):
        return (math.pi / math.sqrt(6) * self.scale).square()

    def log_prob(self, value):
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value):
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value):
        return self.loc - self.scale * (-value.clamp(max=1 - flambeau.finfo(value.dtype).eps).log()).log()

    def entropy(self):
        return self.scale.log() + 1 + 0.57721566490153286060


class Geometric(SuccessDistribution):
    """Failures before the first success."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self):
        return 1 / self.probs - 1

    @property
    def mode(self):
        return flambeau.zeros_like(self.probs)

    @property
    def variance(self):
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape=()):
        with flambeau.no_grad():
            return (_uniform(self, sample_shape, self.probs).log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        self._validate_sample(value)
        probs = clamp_probs(self.probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        p = clamp_probs(self.probs)
        return -((1 - p) * (1 - p).log() + p * p.log()) / p


class Poisson(Distribution):
    """Events in a time, at a rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.rate

    variance = mean

    @property
    def mode(self):
        return self.rate.floor()

    def sample(self, sample_shape=()):
        with flambeau.no_grad():
            return flambeau.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_sample(value)
        return value.xlogy(self.rate) - self.rate - (value + 1).lgamma()
