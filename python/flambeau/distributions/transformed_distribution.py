"""Distributions of a function of a draw."""
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform, sum_last


class TransformedDistribution(Distribution):
    """The distribution of transforms applied to draws of base_distribution."""

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms takes one Transform or several in a list, not {transforms}")
        self._all = ComposeTransform(self.transforms)
        needed, made = self._all.domain.event_dim, self._all.codomain.event_dim
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if len(shape) < needed:
            raise ValueError(f"base_distribution needs to have shape with size at least {needed}, but got "
                             f"{shape}.")
        result = tuple(self._all.forward_shape(shape))
        expanded = tuple(self._all.inverse_shape(result))
        if expanded != shape:
            at = len(expanded) - len(base_distribution.event_shape)
            base_distribution = base_distribution.expand(expanded[:at])
        more = needed - len(base_distribution.event_shape)
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        at = len(result) - made - max(len(base_distribution.event_shape) - needed, 0)
        super().__init__(result[:at], result[at:], validate_args=validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @property
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def sample(self, sample_shape=()):
        return self._all(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._all(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        dims, log_prob, y = len(self.event_shape), 0.0, value
        for t in reversed(self.transforms):
            x = t.inv(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            log_prob = log_prob - sum_last(t.log_abs_det_jacobian(x, y), dims - t.domain.event_dim)
            y = x
        return log_prob + sum_last(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _oriented(self, value):
        """A probability, from the other end where the transforms turn the line round."""
        sign = self._all.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value):
        return self._oriented(self.base_dist.cdf(self._all.inv(value)))

    def icdf(self, value):
        return self._all(self.base_dist.icdf(self._oriented(value)))

    def expand(self, batch_shape, _instance=None):
        shape = self._all.inverse_shape((*batch_shape, *self.event_shape))
        base = self.base_dist.expand(shape[:len(shape) - len(self.base_dist.event_shape)])
        return TransformedDistribution(base, self.transforms, validate_args=False)
