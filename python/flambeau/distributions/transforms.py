"""Functions with an inverse and a known change of volume."""
import math

import flambeau

from . import constraints


class Transform:
    """y = transform(x), x = transform.inv(y), log_abs_det_jacobian(x, y)."""

    bijective, domain, codomain, sign = True, constraints.real, constraints.real, 1

    def __init__(self, cache_size=0):
        self._inverse_of = None

    def __call__(self, x):
        return self._call(x)

    @property
    def inv(self):
        return self._inverse_of or _Inverse(self)

    @property
    def event_dim(self):
        return self.domain.event_dim

    def forward_shape(self, shape):
        return shape

    inverse_shape = forward_shape

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    def __init__(self, transform):
        super().__init__()
        self._inverse_of = transform

    domain = property(lambda self: self._inverse_of.codomain)
    codomain = property(lambda self: self._inverse_of.domain)
    sign = property(lambda self: self._inverse_of.sign)

    def _call(self, x):
        return self._inverse_of._inverse(x)

    def _inverse(self, y):
        return self._inverse_of(y)

    def log_abs_det_jacobian(self, x, y):
        return -self._inverse_of.log_abs_det_jacobian(y, x)


class ComposeTransform(Transform):
    """One after the other."""

    def __init__(self, parts, cache_size=0):
        super().__init__()
        self.parts = list(parts)

    domain = property(lambda self: self.parts[0].domain if self.parts else constraints.real)
    codomain = property(lambda self: self.parts[-1].codomain if self.parts else constraints.real)

    @property
    def sign(self):
        return math.prod(p.sign for p in self.parts)

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y):
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        total = flambeau.zeros_like(x)
        for part in self.parts:
            after = part(x)
            total = total + part.log_abs_det_jacobian(x, after)
            x = after
        return total


identity_transform = ComposeTransform([])


class ExpTransform(Transform):
    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class AffineTransform(Transform):
    """loc + scale * x."""

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__()
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    @property
    def sign(self):
        return self.scale.sign() if isinstance(self.scale,
                                               flambeau.Tensor) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale if isinstance(self.scale, flambeau.Tensor) else flambeau.full_like(x, self.scale)
        result = scale.abs().log().expand(x.shape)
        return result.reshape(*x.shape[:x.dim() - self._event_dim], -1).sum(-1) if self._event_dim else result


class SigmoidTransform(Transform):
    codomain = constraints.unit_interval

    def _call(self, x):
        limit = flambeau.finfo(x.dtype)
        return x.sigmoid().clamp(min=limit.tiny, max=1 - limit.eps)

    def _inverse(self, y):
        limit = flambeau.finfo(y.dtype)
        y = y.clamp(min=limit.tiny, max=1 - limit.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -flambeau.softplus(-x) - flambeau.softplus(x)


class TanhTransform(Transform):
    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        return 2 * (math.log(2) - x - flambeau.softplus(-2 * x))


class SoftmaxTransform(Transform):
    """Onto probabilities; not one to one."""

    bijective, domain, codomain = False, constraints.real_vector, constraints.simplex

    def _call(self, x):
        return x.softmax(-1)

    def _inverse(self, y):
        return y.log()
