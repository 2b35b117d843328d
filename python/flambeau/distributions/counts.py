"""Distributions of numbers of successes."""
import flambeau

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .success import SuccessDistribution


class _Trials(SuccessDistribution):
    def __init__(self, total_count, probs, logits, validate_args):
        (count,) = self._take(probs, logits, total_count)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)


class Binomial(_Trials):
    """Successes of total_count trials, each with probability probs, or sigmoid(logits)."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval,
                       "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        super().__init__(total_count, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return flambeau.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with flambeau.no_grad():
            shape = self._extended_shape(sample_shape)
            return flambeau.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        self._validate_sample(value)
        n, logits = self.total_count, self.logits
        choices = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return choices + value * logits - n * (logits.clamp(min=0) + (-logits.abs()).exp().log1p())

    def _one_count(self, what):
        count = int(self.total_count.max())
        if bool((self.total_count != count).any()):
            raise NotImplementedError(f"{what} of Binomials of different total_count is not supported")
        return count

    def enumerate_support(self, expand=True):
        count = self._one_count("enumerate_support()")
        values = flambeau.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    def entropy(self):
        self._one_count("entropy()")
        log_probs = self.log_prob(self.enumerate_support(False))
        return -(log_probs.exp() * log_probs).sum(0)


class NegativeBinomial(_Trials):
    """Successes before total_count failures, each trial with probability probs, or sigmoid(logits)."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        super().__init__(total_count, probs, logits, validate_args)

    @property
    def mean(self):
        return self.total_count * self.logits.exp()

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self):
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape=()):
        with flambeau.no_grad():
            shape = self._extended_shape(sample_shape)
            rates = flambeau._standard_gamma(self.total_count.expand(shape)) * self.logits.exp()
            return flambeau.poisson(rates)

    def log_prob(self, value):
        self._validate_sample(value)
        n, log_sigmoid = self.total_count, flambeau.nn.functional.logsigmoid
        choices = (n + value).lgamma() - (value + 1).lgamma() - n.lgamma()
        choices = flambeau.where(n + value == 0, 0.0, choices)
        return n * log_sigmoid(-self.logits) + value * log_sigmoid(self.logits) + choices


class Multinomial(Distribution):
    """How often each class is drawn in total_count draws of a Categorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial: total_count must be one int for the whole batch")
        self.total_count, self._categorical = total_count, Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with flambeau.no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
            counts = flambeau.zeros(self._extended_shape(sample_shape), dtype=self.probs.dtype,
                                    device=self.probs.device)
            return counts.scatter_add_(-1, drawn, flambeau.ones(drawn.shape, dtype=counts.dtype,
                                                                device=counts.device))

    def log_prob(self, value):
        self._validate_sample(value)
        logits, value = flambeau.broadcast_tensors(self.logits, value)
        logits = flambeau.where((value == 0) & (logits == -flambeau.inf), 0.0, logits)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (logits * value).sum(-1)

    def entropy(self):
        n = flambeau.tensor(float(self.total_count), dtype=self.probs.dtype)
        counts = Binomial(self.total_count, self.probs, validate_args=False)
        values = counts.enumerate_support(expand=False)[1:]
        shared = (counts.log_prob(values).exp() * (values + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - (n + 1).lgamma() + shared

    def expand(self, batch_shape, _instance=None):
        logits = self.logits.expand(*batch_shape, *self.event_shape)
        return Multinomial(self.total_count, logits=logits, validate_args=False)
