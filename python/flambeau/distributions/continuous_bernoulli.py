"""ContinuousBernoulli: densities between 0 and 1 (Loaiza-Ganem and Cunningham, 2019)."""
import math

import flambeau

from . import constraints
from .success import SuccessDistribution
from .utils import clamp_probs


class ContinuousBernoulli(SuccessDistribution):
    """Density proportional to probs^x (1 - probs)^(1 - x). Between `lims` series replace the formulas."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support, has_rsample = constraints.unit_interval, True

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._lims = lims
        self._take(probs, logits)
        if probs is not None:
            self.probs = self._param = clamp_probs(self.probs)
        super().__init__(self._param.shape, validate_args=validate_args)

    def _by_parts(self, formula, series):
        """formula(probs) outside of the limits, series(probs - 1/2) between them."""
        p = self.probs
        outside = (p <= self._lims[0]) | (p > self._lims[1])
        safe = flambeau.where(outside, p, self._lims[0])
        return flambeau.where(outside, formula(safe), series(p - 0.5))

    def _log_size(self):
        """Minus the logarithm of the integral of probs^x (1 - probs)^(1 - x)."""
        return self._by_parts(
            lambda p: ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log(),
            lambda d: math.log(2) + (4 / 3 + 104 / 45 * d.square()) * d.square())

    @property
    def mean(self):
        return self._by_parts(lambda p: p / (2 * p - 1) + 1 / ((-p).log1p() - p.log()),
                              lambda d: 0.5 + (1 / 3 + 16 / 45 * d.square()) * d)

    @property
    def variance(self):
        return self._by_parts(
            lambda p: p * (p - 1) / (1 - 2 * p).square() + 1 / ((-p).log1p() - p.log()).square(),
            lambda d: 1 / 12 - (1 / 15 - 128 / 945 * d.square()) * d.square())

    def icdf(self, value):
        return self._by_parts(
            lambda p: ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p()),
            lambda d: value + 0 * d)

    def cdf(self, value):
        self._validate_sample(value)
        inside = self._by_parts(
            lambda p: (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1), lambda d: value + 0 * d)
        return flambeau.where(value <= 0, 0.0, flambeau.where(value >= 1, 1.0, inside))

    def rsample(self, sample_shape=()):
        u = flambeau.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype,
                          device=self.probs.device)
        return self.icdf(u)

    def log_prob(self, value):
        self._validate_sample(value)
        logits, value = flambeau.broadcast_tensors(self.logits, value)
        return logits * value - flambeau.softplus(logits) + self._log_size()

    def entropy(self):
        rest, full = (-self.probs).log1p(), self.probs.log()
        return self.mean * (rest - full) - self._log_size() - rest

    def expand(self, batch_shape, _instance=None):
        return ContinuousBernoulli(**{self._form: self._param.expand(batch_shape)}, lims=self._lims,
                                   validate_args=False)
