"""Normal distributions of vectors."""
import math

import flambeau

from . import constraints
from .distribution import Distribution
from .utils import lazy_property


class MultivariateNormal(Distribution):
    """Mean loc, and one of: the covariance, its inverse (precision), or its Cholesky factor scale_tril."""

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky}
    support, has_rsample = constraints.real_vector, True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None,
                 validate_args=None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
                 "scale_tril": scale_tril}
        given = {k: v for k, v in given.items() if v is not None}
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if len(given) != 1:
            raise ValueError("Give one of covariance_matrix, precision_matrix and scale_tril, and only one.")
        (name, matrix), = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be a matrix or a batch of matrices, not of {matrix.dim()} "
                             "dimensions")
        batch = flambeau.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(*batch, *matrix.shape[-2:]))
        self.loc = loc.expand(*batch, loc.shape[-1])
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._root = scale_tril
        elif name == "covariance_matrix":
            self._root = flambeau.linalg_cholesky(covariance_matrix)
        else:
            self._root = _root_of_inverse(precision_matrix)

    @lazy_property
    def scale_tril(self):
        return self._root.expand(*self._batch_shape, *self._event_shape, *self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        return (self._root @ self._root.mT).expand(*self._batch_shape, *self._event_shape, *self._event_shape)

    @lazy_property
    def precision_matrix(self):
        inverse = _inverse_of_lower(self._root)
        return (inverse.mT @ inverse).expand(*self._batch_shape, *self._event_shape, *self._event_shape)

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def variance(self):
        return self._root.square().sum(-1).expand(*self._batch_shape, *self._event_shape)

    def rsample(self, sample_shape=()):
        noise = flambeau.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype,
                               device=self.loc.device)
        return self.loc + (self._root @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value):
        self._validate_sample(value)
        off = _inverse_of_lower(self._root) @ (value - self.loc).unsqueeze(-1)
        size = off.squeeze(-1).square().sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + size) - self._half_log_det()

    def _half_log_det(self):
        return self._root.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self):
        entropy = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape)

    def expand(self, batch_shape, _instance=None):
        n = self._event_shape[0]
        return MultivariateNormal(self.loc.expand(*batch_shape, n),
                                  scale_tril=self._root.expand(*batch_shape, n, n), validate_args=False)


def _inverse_of_lower(matrix):
    identity = flambeau.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return flambeau.linalg_solve_triangular(matrix, identity.expand(matrix.shape), upper=False)


def _root_of_inverse(precision):
    """The lower L with L L^T = the inverse."""
    flipped = flambeau.linalg_cholesky(precision.flip((-2, -1)))
    return _inverse_of_lower(flipped.flip((-2, -1)).mT)
