"""Distributions of angles."""
import math

import flambeau

from . import constraints
from .distribution import Distribution, broadcast_all


class VonMises(Distribution):
    """Density proportional to exp(concentration cos(x - loc)), from -pi to pi."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def variance(self):
        """1 minus the length of the mean direction."""
        return 1 - flambeau.special.i1e(self.concentration) / flambeau.special.i0e(self.concentration)

    def log_prob(self, value):
        self._validate_sample(value)
        k = self.concentration
        log_size = math.log(2 * math.pi) + k + flambeau.special.i0e(k).log()
        return k * (value - self.loc).cos() - log_size

    def sample(self, sample_shape=()):
        """Rejection from a wrapped Cauchy distribution (Best and Fisher, 1979)."""
        with flambeau.no_grad():
            shape = self._extended_shape(sample_shape)
            angle = _draws(self.concentration.expand(shape).double().reshape(-1)).reshape(shape)
            turned = angle + math.pi + self.loc.double()
            return (turned % (2 * math.pi) - math.pi).to(self.loc.dtype)


def _draws(concentration):
    tau = 1 + (1 + 4 * concentration.square()).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * concentration)
    # for concentrations near 0 by its series
    proposal = flambeau.where(concentration < 1e-5, 1 / concentration + concentration,
                              (1 + rho * rho) / (2 * rho))
    out = flambeau.empty_like(concentration)
    left = flambeau.arange(out.numel(), device=out.device)
    while left.numel():
        r, k = proposal[left], concentration[left]
        u1, u2, u3 = flambeau.rand(3, left.numel(), dtype=out.dtype, device=out.device).clamp(min=2.0**-54)
        z = (math.pi * u1).cos()
        f = (1 + r * z) / (r + z)
        c = k * (r - f)
        good = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
        out[left[good]] = ((u3 - 0.5).sign() * f.clamp(-1, 1).acos())[good]
        left = left[~good]
    return out
