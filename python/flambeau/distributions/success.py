"""What distributions of a success's probability share."""
from .distribution import Distribution, broadcast_all
from .utils import lazy_property, logits_to_probs, probs_to_logits


class SuccessDistribution(Distribution):
    """One parameter in two forms: the probability probs, or logits, probs being sigmoid(logits)."""

    def _take(self, probs, logits, *others):
        """Keeps the one that is given; returns the others, broadcast with it."""
        if (probs is None) == (logits is None):
            raise ValueError("Give one of `probs` and `logits`, not both and not neither.")
        *others, self._param = broadcast_all(*others, logits if probs is None else probs)
        self._form = "logits" if probs is None else "probs"
        setattr(self, self._form, self._param)
        return others

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self):
        return self._param.shape

    def expand(self, batch_shape, _instance=None):
        others = {name: getattr(self, name).expand(batch_shape) for name in self.arg_constraints
                  if name not in ("probs", "logits")}
        return type(self)(**others, **{self._form: self._param.expand(batch_shape)}, validate_args=False)
