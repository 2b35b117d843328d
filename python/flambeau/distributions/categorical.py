"""One of several classes."""
import flambeau

from . import constraints
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits


class Categorical(Distribution):
    """Class k of the last dimension, its weight probs[k], which need not add up to 1, or exp(logits[k])."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        if (probs is None) == (logits is None):
            raise ValueError("Give one of `probs` and `logits`, not both and not neither.")
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._param = self.logits if probs is None else self.probs
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits)

    @property
    def param_shape(self):
        return self._param.shape

    @property
    def mean(self):
        return self.probs.new_full(self._extended_shape(), float("nan"))

    variance = mean

    @property
    def mode(self):
        return self.probs.argmax(-1)

    def sample(self, sample_shape=()):
        with flambeau.no_grad():
            count = 1
            for n in sample_shape:
                count *= n
            drawn = flambeau.multinomial(self.probs.reshape(-1, self._num_events), count, True)
            return drawn.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        shape = flambeau.broadcast_shapes(value.shape, (*self.logits.shape[:-1], 1))[:-1]
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, value.expand(*shape, 1)).squeeze(-1)

    def entropy(self):
        logits = self.logits.clamp(min=flambeau.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def expand(self, batch_shape, _instance=None):
        form = "probs" if self._param is self.__dict__.get("probs") else "logits"
        return Categorical(**{form: self._param.expand(*batch_shape, self._num_events)}, validate_args=False)

    def enumerate_support(self, expand=True):
        values = flambeau.arange(self._num_events, device=self._param.device)
        values = values.view(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class OneHotCategorical(Distribution):
    """As Categorical; a draw is a vector with one 1."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = probs

    @property
    def mode(self):
        return self._vectors(self._categorical.mode)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def _vectors(self, indices):
        classes = flambeau.arange(self.event_shape[0], device=indices.device)
        return (indices.unsqueeze(-1) == classes).to(self.probs.dtype)

    def sample(self, sample_shape=()):
        return self._vectors(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def expand(self, batch_shape, _instance=None):
        return OneHotCategorical(logits=self.logits.expand(*batch_shape, *self.event_shape))
