"""Bernoulli: 0 or 1."""
import flambeau

from . import constraints
from .success import SuccessDistribution
from .utils import clamp_probs


class Bernoulli(SuccessDistribution):
    """1 with probability probs, or sigmoid(logits)."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support, has_enumerate_support = constraints.boolean, True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return flambeau.where(self.probs == 0.5, float("nan"), mode)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with flambeau.no_grad():
            return flambeau.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_sample(value)
        logits, value = flambeau.broadcast_tensors(self.logits, value)
        return -(logits.clamp(min=0) - logits * value + (-logits.abs()).exp().log1p())

    def entropy(self):
        p = clamp_probs(self.probs)
        return -(p * p.log() + (1 - p) * (-p).log1p())

    def enumerate_support(self, expand=True):
        values = flambeau.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
