"""Between probabilities and logits."""
import flambeau

from .distribution import broadcast_all

__all__ = ["broadcast_all", "clamp_probs", "logits_to_probs", "probs_to_logits", "lazy_property"]


def clamp_probs(probs):
    eps = flambeau.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits, is_binary=False):
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs, is_binary=False):
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property:
    """A property that is computed once."""

    def __init__(self, wrapped):
        self.wrapped, self.__doc__, self.__name__ = wrapped, wrapped.__doc__, wrapped.__name__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with flambeau.enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.__name__] = value
        return value
