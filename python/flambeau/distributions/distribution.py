"""Distribution, the base of all."""
import numbers

import flambeau
from flambeau import Tensor

from . import constraints


def broadcast_all(*values):
    """Tensors and numbers as tensors of one shape."""
    given = [v for v in values if isinstance(v, Tensor)]
    options = ({"dtype": given[0].dtype, "device": given[0].device} if given
               else {"dtype": flambeau.get_default_dtype()})
    for v in values:
        if not isinstance(v, (Tensor, numbers.Number)):
            raise ValueError("A distribution's parameters are numbers or tensors (__torch_function__ "
                             f"objects count), not {type(v).__name__}.")
    return flambeau.broadcast_tensors(*(v if isinstance(v, Tensor) else flambeau.full((), v, **options)
                                        for v in values))


class Distribution:
    """batch_shape: how many distributions; event_shape: the shape of one draw."""

    has_rsample, has_enumerate_support = False, False
    _validate_args = __debug__
    arg_constraints = {}

    @staticmethod
    def set_default_validate_args(value):
        """Whether parameters and values are checked."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = flambeau.Size(batch_shape), flambeau.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._validate_args:
            return
        for name, constraint in self.arg_constraints.items():
            # Parameters that follow from others are not there before they are asked for.
            if constraints.is_dependent(constraint) or name not in self.__dict__:
                continue
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(f"{self!r}: parameter {name} ({type(value).__name__} of shape "
                                 f"{tuple(value.shape)}) has values outside of {constraint!r}:\n{value}")

    @property
    def batch_shape(self):
        return self._batch_shape

    @property
    def event_shape(self):
        return self._event_shape

    @property
    def support(self):
        raise NotImplementedError

    @property
    def mean(self):
        raise NotImplementedError

    @property
    def mode(self):
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        raise NotImplementedError

    @property
    def stddev(self):
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """A draw, or sample_shape of them, without gradient."""
        with flambeau.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """A draw through which gradients reach the parameters."""
        raise NotImplementedError

    def log_prob(self, value):
        """The logarithm of the density, or of the probability."""
        raise NotImplementedError

    def cdf(self, value):
        raise NotImplementedError

    def icdf(self, value):
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        raise NotImplementedError

    def entropy(self):
        raise NotImplementedError

    def perplexity(self):
        return self.entropy().exp()

    def expand(self, batch_shape, _instance=None):
        """The same distribution with another batch shape, by broadcasting."""
        parameters = {n: getattr(self, n) for n in self.arg_constraints if n in self.__dict__}
        grown = {n: p.expand(*batch_shape, *p.shape[p.dim() - self._event_dims(n):])
                 for n, p in parameters.items()}
        return type(self)(**grown, validate_args=False)

    def _event_dims(self, name):
        """How many dimensions of a parameter belong to one distribution."""
        return self.arg_constraints[name].event_dim

    def _extended_shape(self, sample_shape=()):
        return flambeau.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value):
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = len(value.shape) - len(self._event_shape)
        if tuple(value.shape[start:]) != tuple(self._event_shape):
            raise ValueError(f"The value's shape {tuple(value.shape)} does not end in the event_shape "
                             f"{tuple(self._event_shape)}.")
        for n, m in zip(reversed(value.shape[:start]), reversed(self._batch_shape)):
            if n != 1 and m != 1 and n != m:
                raise ValueError(f"A value of shape {tuple(value.shape)} does not broadcast with the "
                                 f"distribution's shape {tuple(self._extended_shape())}.")
        try:
            support = self.support
        except NotImplementedError:
            return
        if not bool(support.check(value).all()):
            raise ValueError(f"{self!r}: the value ({type(value).__name__} of shape {tuple(value.shape)}) is "
                             f"not everywhere in the support ({support!r}):\n{value}")

    def __repr__(self):
        names = [n for n in self.arg_constraints if n in self.__dict__]
        values = (getattr(self, n) for n in names)
        parts = (f"{n}: {v.item() if v.numel() == 1 else tuple(v.shape)}" for n, v in zip(names, values))
        return f"{type(self).__name__}({', '.join(parts)})"
