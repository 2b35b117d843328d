"""Draws of classes that gradients go through: relaxed by a temperature (Maddison et al., Jang et al., 2016).
"""
import flambeau

from . import constraints
from .categorical import Categorical, OneHotCategorical
from .distribution import Distribution
from .success import SuccessDistribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform
from .utils import clamp_probs


class LogitRelaxedBernoulli(SuccessDistribution):
    """The logit of a RelaxedBernoulli."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support, has_rsample = constraints.real, True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(flambeau.rand(shape, dtype=self._param.dtype, device=self._param.device))
        p = clamp_probs(self.probs)
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value):
        self._validate_sample(value)
        off = self.logits - value * self.temperature
        return flambeau.as_tensor(self.temperature).log() + off - 2 * off.exp().log1p()

    def expand(self, batch_shape, _instance=None):
        return LogitRelaxedBernoulli(self.temperature, **{self._form: self._param.expand(batch_shape)},
                                     validate_args=False)


class RelaxedBernoulli(TransformedDistribution):
    """A number between 0 and 1, near one of them where the temperature is low."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support, has_rsample = constraints.unit_interval, True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(),
                         validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class ExpRelaxedCategorical(Distribution):
    """The logarithms of a RelaxedOneHotCategorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support, has_rsample = constraints.real_vector, True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical, self.temperature = Categorical(probs, logits), temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    logits = property(lambda self: self._categorical.logits)
    probs = property(lambda self: self._categorical.probs)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(flambeau.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value):
        self._validate_sample(value)
        logits, value = flambeau.broadcast_tensors(self.logits, value)
        count, temperature = self.event_shape[0], flambeau.as_tensor(self.temperature, dtype=value.dtype)
        size = flambeau.tensor(float(count)).lgamma() + (count - 1) * temperature.log()
        score = logits - value * temperature
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + size

    def expand(self, batch_shape, _instance=None):
        logits = self.logits.expand(*batch_shape, *self.event_shape)
        return ExpRelaxedCategorical(self.temperature, logits=logits, validate_args=False)


class RelaxedOneHotCategorical(TransformedDistribution):
    """Probabilities of classes, near one class where the temperature is low."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support, has_rsample = constraints.simplex, True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits), ExpTransform(),
                         validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """As OneHotCategorical; the gradient goes to probs as if the draw was probs."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
