"""Mixtures."""
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """A draw of one of the components, which are the last batch dimension, chosen by a Categorical."""

    arg_constraints = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        if component_distribution.batch_shape[-1] != mixture_distribution.probs.shape[-1]:
            raise ValueError(f"The `mixture_distribution` weighs {mixture_distribution.probs.shape[-1]} "
                             "components, but the last batch dimension of `component_distribution` has "
                             f"{component_distribution.batch_shape[-1]}")
        super().__init__(component_distribution.batch_shape[:-1], component_distribution.event_shape,
                         validate_args=validate_args)

    @property
    def support(self):
        return self.component_distribution.support

    def _weights(self):
        probs = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *(1,) * len(self.event_shape))

    def _over_components(self, x):
        return (self._weights() * x).sum(-1 - len(self.event_shape))

    @property
    def mean(self):
        return self._over_components(self.component_distribution.mean)

    @property
    def variance(self):
        off = self.component_distribution.mean - self.mean.unsqueeze(-1 - len(self.event_shape))
        return self._over_components(self.component_distribution.variance + off.square())

    def log_prob(self, value):
        self._validate_sample(value)
        inner = self.component_distribution.log_prob(value.unsqueeze(-1 - len(self.event_shape)))
        return (inner + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape=()):
        which = self.mixture_distribution.sample(sample_shape)
        draws = self.component_distribution.sample(sample_shape)
        n = len(self.event_shape)
        dim = draws.dim() - 1 - n
        index = which.reshape(*which.shape, 1, *(1,) * n).expand(*which.shape, 1, *self.event_shape)
        return draws.gather(dim, index).squeeze(dim)
