"""Functions with an inverse and a known change of volume."""
import math

import flambeau

from . import constraints

__all__ = ["AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
           "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform",
           "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
           "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
           "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform"]


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

    def log_abs_det_jacobian(self, x, y):
        """The logarithm of the change of volume at x."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian()")

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

    bijective = property(lambda self: self._inverse_of.bijective)

    def log_abs_det_jacobian(self, x, y):
        return -self._inverse_of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inverse_of.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inverse_of.forward_shape(shape)

    def __repr__(self):
        return f"{self._inverse_of!r}.inv"


def sum_last(x, count):
    """The sum over the last dimensions."""
    return x.reshape(*x.shape[:x.dim() - count], -1).sum(-1) if count else x


def _with_dims(constraint, count):
    return constraints.independent(constraint, count) if count else constraint


class ComposeTransform(Transform):
    """One after the other."""

    def __init__(self, parts, cache_size=0):
        super().__init__()
        self.parts = list(parts)

    bijective = property(lambda self: all(p.bijective for p in self.parts))

    @property
    def domain(self):
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _with_dims(self.parts[0].domain, dims - self.parts[0].domain.event_dim)

    @property
    def codomain(self):
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _with_dims(self.parts[-1].codomain, dims - self.parts[-1].codomain.event_dim)

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
        if not self.parts:
            return flambeau.zeros_like(x)
        total, dims = 0, self.domain.event_dim
        for part in self.parts:
            after = part(x)
            total = total + sum_last(part.log_abs_det_jacobian(x, after), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return f"ComposeTransform({self.parts})"


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
    domain = codomain = property(lambda self: _with_dims(constraints.real, self._event_dim))

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
        return sum_last(scale.abs().log().expand(x.shape), self._event_dim)


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


class AbsTransform(Transform):
    """|x|, whose inverse is the positive one."""

    bijective, codomain = False, constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class PowerTransform(Transform):
    """x^exponent of positive numbers."""

    domain = codomain = constraints.positive

    def __init__(self, exponent, cache_size=0):
        super().__init__()
        self.exponent = flambeau.as_tensor(exponent)

    @property
    def sign(self):
        return self.exponent.sign()

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return flambeau.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class SoftplusTransform(Transform):
    """log(1 + e^x)."""

    codomain = constraints.positive

    def _call(self, x):
        return flambeau.nn.functional.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -flambeau.softplus(-x)


class StickBreakingTransform(Transform):
    """From n numbers to n + 1 probabilities: each takes its part of what the ones before have left."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _steps(self, x):
        """x moved so that 0 gives equal parts."""
        left = x.shape[-1] + 1 - flambeau.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
        return x - left.log()

    def _call(self, x):
        part = self._steps(x).sigmoid()
        left = (1 - part).cumprod(-1)
        return flambeau.nn.functional.pad(part, (0, 1), value=1) * flambeau.nn.functional.pad(left, (1, 0),
                                                                                              value=1)

    def _inverse(self, y):
        taken = y[..., :-1]
        left = (1 - taken.cumsum(-1)).clamp(min=flambeau.finfo(y.dtype).tiny)
        count = y.shape[-1] - flambeau.arange(1, y.shape[-1], dtype=y.dtype, device=y.device)
        return taken.log() - left.log() + count.log()

    def log_abs_det_jacobian(self, x, y):
        steps = self._steps(x)
        return (-steps + flambeau.nn.functional.logsigmoid(steps) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape):
        return (*shape[:-1], shape[-1] - 1)


class ReshapeTransform(Transform):
    """Another shape for each value."""

    def __init__(self, in_shape, out_shape, cache_size=0):
        super().__init__()
        self.in_shape, self.out_shape = flambeau.Size(in_shape), flambeau.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")

    domain = property(lambda self: _with_dims(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: _with_dims(constraints.real, len(self.out_shape)))

    def _call(self, x):
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y):
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[:x.dim() - len(self.in_shape)])

    def _other(self, shape, mine, others):
        at = len(shape) - len(mine)
        if at < 0 or tuple(shape[at:]) != tuple(mine):
            raise ValueError(f"ReshapeTransform: expected a shape that ends in {tuple(mine)}, got "
                             f"{tuple(shape)}")
        return flambeau.Size((*shape[:at], *others))

    def forward_shape(self, shape):
        return self._other(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._other(shape, self.out_shape, self.in_shape)


class IndependentTransform(Transform):
    """Another transform, whose last reinterpreted_batch_ndims dimensions form one value."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__()
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims

    domain = property(lambda self: _with_dims(self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(lambda self: _with_dims(self.base_transform.codomain, self.reinterpreted_batch_ndims))
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x):
        return self.base_transform(x)

    def _inverse(self, y):
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)

    def __repr__(self):
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class LowerCholeskyTransform(Transform):
    """From any matrix to a lower triangular one with a positive diagonal: its exponential."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """From any matrix to a positive definite one, by its Cholesky factor."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x):
        root = LowerCholeskyTransform()(x)
        return root @ root.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(flambeau.linalg_cholesky(y))


class CorrCholeskyTransform(Transform):
    """From n (n - 1) / 2 numbers to the Cholesky factor of a correlation matrix of n rows."""

    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    def _call(self, x):
        x = x.tanh()
        limit = flambeau.finfo(x.dtype).eps
        count = round((0.25 + 2 * x.shape[-1]) ** 0.5 + 0.5)
        rows, columns = flambeau.tril_indices(count, count, -1)
        lower = x.new_zeros((*x.shape[:-1], count, count))
        lower[..., rows, columns] = x.clamp(-1 + limit, 1 - limit)
        left = (1 - lower.square()).cumprod(-1).sqrt()  # of each row's length
        lower = lower + flambeau.eye(count, dtype=x.dtype, device=x.device)
        return lower * flambeau.nn.functional.pad(left[..., :-1], (1, 0), value=1)

    def _inverse(self, y):
        left = (1 - y.square().cumsum(-1))[..., :-1].clamp(min=flambeau.finfo(y.dtype).tiny).sqrt()
        rows, columns = flambeau.tril_indices(y.shape[-1], y.shape[-1], -1)
        part = (y / flambeau.nn.functional.pad(left, (1, 0), value=1))[..., rows, columns]
        return (part.log1p() - (-part).log1p()) / 2

    def log_abs_det_jacobian(self, x, y):
        left = (1 - y.square().cumsum(-1)).clamp(min=flambeau.finfo(y.dtype).tiny)
        lengths = left.tril(-2).where(left.tril(-2) > 0, flambeau.ones_like(left)).log().sum((-2, -1)) / 2
        return lengths - 2 * (x + flambeau.softplus(-2 * x) - math.log(2)).sum(-1)

    def forward_shape(self, shape):
        count = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if count * (count - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], count, count)

    def inverse_shape(self, shape):
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class CatTransform(Transform):
    """A transform for each part of a tensor along a dimension."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__()
        self.transforms, self.dim = list(tseq), dim
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.transforms)

    domain = property(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim,
                                                   self.lengths))
    codomain = property(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim,
                                                     self.lengths))
    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _parts(self, x):
        return x.split(self.lengths, self.dim)

    def _joined(self, parts):
        return flambeau.cat(parts, self.dim)

    def _call(self, x):
        return self._joined([t(p) for t, p in zip(self.transforms, self._parts(x))])

    def _inverse(self, y):
        return self._joined([t.inv(p) for t, p in zip(self.transforms, self._parts(y))])

    def log_abs_det_jacobian(self, x, y):
        return self._joined([t.log_abs_det_jacobian(a, b) for t, a, b in
                             zip(self.transforms, self._parts(x), self._parts(y))])


class StackTransform(CatTransform):
    """A transform for each slice of a tensor along a dimension."""

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(tseq, dim)

    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))

    def _parts(self, x):
        return x.unbind(self.dim)

    def _joined(self, parts):
        return flambeau.stack(parts, self.dim)


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution of one variable."""

    codomain = constraints.unit_interval

    def __init__(self, distribution, cache_size=0):
        super().__init__()
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)
