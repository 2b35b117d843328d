"""Distributions of a function of a draw."""
from .distribution import Distribution
from .transforms import ComposeTransform, Transform


class TransformedDistribution(Distribution):
    """The distribution of transforms applied to draws of base_distribution."""

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms takes one Transform or several in a list, not {transforms}")
        self.base_dist, self._all = base_distribution, ComposeTransform(self.transforms)
        super().__init__(base_distribution.batch_shape, base_distribution.event_shape,
                         validate_args=validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @property
    def support(self):
        return self.transforms[-1].codomain if self.transforms else self.base_dist.support

    def sample(self, sample_shape=()):
        return self._all(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._all(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        x = self._all.inv(value)
        volume = self._all.log_abs_det_jacobian(x, value)
        n = len(self.event_shape)
        volume = volume.reshape(*volume.shape[:volume.dim() - n], -1).sum(-1) if n else volume
        return self.base_dist.log_prob(x) - volume

    def _oriented(self, value):
        """A probability, from the other end where the transforms turn the line round."""
        sign = self._all.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value):
        return self._oriented(self.base_dist.cdf(self._all.inv(value)))

    def icdf(self, value):
        return self._all(self.base_dist.icdf(self._oriented(value)))

    def expand(self, batch_shape, _instance=None):
        return TransformedDistribution(self.base_dist.expand(batch_shape), self.transforms,
                                       validate_args=False)
