"""Gamma distributions, and those of their sums and quotients."""
import math

import flambeau

from . import constraints
from .distribution import Distribution, broadcast_all
from .exp_family import ExponentialFamily


class Gamma(ExponentialFamily):
    """Density rate^c x^(c - 1) exp(-rate x) / Gamma(c), c being the concentration."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support, has_rsample = constraints.nonnegative, True

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        draws = flambeau._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return draws.clamp(min=flambeau.finfo(draws.dtype).tiny)

    def log_prob(self, value):
        self._validate_sample(value)
        c = self.concentration
        return c.xlogy(self.rate) + (c - 1).xlogy(value) - self.rate * value - c.lgamma()

    def cdf(self, value):
        self._validate_sample(value)
        return flambeau.special.gammainc(self.concentration, self.rate * value)

    def entropy(self):
        c = self.concentration
        return c - self.rate.log() + c.lgamma() + (1 - c) * c.digamma()


class Chi2(Gamma):
    """The sum of df squares of standard normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = property(lambda self: self.concentration * 2)

    def expand(self, batch_shape, _instance=None):
        return Chi2(self.df.expand(batch_shape), validate_args=False)

    def __repr__(self):
        return f"Chi2(df: {self.df.item() if self.df.numel() == 1 else tuple(self.df.shape)})"


class InverseGamma(Distribution):
    """One divided by a Gamma."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support, has_rsample = constraints.positive, True

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self):
        c = self.concentration
        return flambeau.where(c > 1, self.rate / (c - 1), math.inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        c = self.concentration
        return flambeau.where(c > 2, self.rate.square() / ((c - 1).square() * (c - 2)), math.inf)

    def rsample(self, sample_shape=()):
        return 1 / Gamma(self.concentration, self.rate, validate_args=False).rsample(sample_shape)

    def log_prob(self, value):
        self._validate_sample(value)
        c = self.concentration
        return c.xlogy(self.rate) - (c + 1) * value.log() - self.rate / value - c.lgamma()

    def cdf(self, value):
        self._validate_sample(value)
        return flambeau.special.gammaincc(self.concentration, self.rate / value)

    def entropy(self):
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()


class Dirichlet(ExponentialFamily):
    """Probabilities of several classes: gamma draws of these concentrations, divided by their sum."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support, has_rsample = constraints.simplex, True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self):
        """Of concentrations that are all below 1, one of the corners: the first."""
        above = (self.concentration - 1).clamp(min=0)
        corner = flambeau.zeros_like(above)
        corner[..., 0] = 1
        in_corner = (self.concentration < 1).all(-1, keepdim=True)
        return flambeau.where(in_corner, corner, above / above.sum(-1, keepdim=True))

    @property
    def variance(self):
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape=()):
        return flambeau._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_sample(value)
        c = self.concentration
        return (c - 1).xlogy(value).sum(-1) + c.sum(-1).lgamma() - c.lgamma().sum(-1)

    def entropy(self):
        c, count = self.concentration, self.event_shape[0]
        total = c.sum(-1)
        return (c.lgamma().sum(-1) - total.lgamma() - (count - total) * total.digamma()
                - ((c - 1) * c.digamma()).sum(-1))


class Beta(ExponentialFamily):
    """Density x^(a - 1) (1 - x)^(b - 1) / B(a, b), a being concentration1 and b concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support, has_rsample = constraints.unit_interval, True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self):
        return self._dirichlet().mode[..., 0]

    @property
    def variance(self):
        return self._dirichlet().variance[..., 0]

    def _dirichlet(self):
        both = flambeau.stack([self.concentration1, self.concentration0], -1)
        return Dirichlet(both, validate_args=False)

    def rsample(self, sample_shape=()):
        return self._dirichlet().rsample(sample_shape)[..., 0]

    def log_prob(self, value):
        self._validate_sample(value)
        return self._dirichlet().log_prob(flambeau.stack([value, 1 - value], -1))

    def entropy(self):
        return self._dirichlet().entropy()


class StudentT(Distribution):
    """loc + scale times a standard normal number, divided by the root of a Chi2(df) / df."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support, has_rsample = constraints.real, True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self):
        return flambeau.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        finite = self.scale.square() * self.df / (self.df - 2)
        return flambeau.where(self.df > 2, finite, flambeau.where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        normal = flambeau.randn(shape, dtype=self.df.dtype, device=self.df.device)
        squares = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * normal * (squares / self.df).rsqrt()

    def _log_beta(self):
        return math.lgamma(0.5) + (self.df / 2).lgamma() - ((self.df + 1) / 2).lgamma()

    def log_prob(self, value):
        self._validate_sample(value)
        y = (value - self.loc) / self.scale
        size = self.scale.log() + 0.5 * self.df.log() + self._log_beta()
        return -0.5 * (self.df + 1) * (y.square() / self.df).log1p() - size

    def entropy(self):
        half = (self.df + 1) / 2
        return (self.scale.log() + half * (half.digamma() - (self.df / 2).digamma()) + 0.5 * self.df.log()
                + self._log_beta())


class FisherSnedecor(Distribution):
    """The quotient of a Chi2(df1) / df1 and a Chi2(df2) / df2."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support, has_rsample = constraints.positive, True

    def __init__(self, df1, df2, validate_args=None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self):
        return flambeau.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return flambeau.where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self):
        a, b = self.df1, self.df2
        variance = 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4))
        return flambeau.where(b > 4, variance, math.nan)

    def rsample(self, sample_shape=()):
        over, under = (Gamma(df / 2, df / 2, validate_args=False).rsample(sample_shape)
                       for df in (self.df1, self.df2))
        return (over / under).clamp(min=flambeau.finfo(over.dtype).tiny)

    def log_prob(self, value):
        self._validate_sample(value)
        a, b = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        return ((a + b).lgamma() - a.lgamma() - b.lgamma() + a * ratio.log() + (a - 1) * value.log()
                - (a + b) * (ratio * value).log1p())
