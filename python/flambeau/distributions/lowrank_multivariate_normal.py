"""Normal distributions of vectors whose covariance is a diagonal and a few directions more."""
import math

import flambeau

from . import constraints
from .distribution import Distribution
from .utils import lazy_property


class LowRankMultivariateNormal(Distribution):
    """Covariance W W^T + diag(D): W is cov_factor (..., n, rank), D cov_diag (..., n)."""

    arg_constraints = {"loc": constraints.real_vector,
                       "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support, has_rsample = constraints.real_vector, True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        count = loc.shape[-1]
        if cov_factor.dim() < 2 or cov_factor.shape[-2] != count:
            raise ValueError(f"cov_factor must be a batch of matrices with shape (..., {count}, rank), got "
                             f"{tuple(cov_factor.shape)}")
        if cov_diag.shape[-1:] != (count,):
            raise ValueError(f"cov_diag must be a batch of vectors with shape (..., {count}), got "
                             f"{tuple(cov_diag.shape)}")
        batch = flambeau.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand(*batch, count), cov_diag.expand(*batch, count)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        super().__init__(batch, (count,), validate_args=validate_args)

    @lazy_property
    def _capacitance_root(self):
        """The Cholesky factor of I + W^T D^-1 W (Woodbury's identity)."""
        inner = self.cov_factor.mT @ (self.cov_factor / self.cov_diag.unsqueeze(-1))
        identity = flambeau.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        return flambeau.linalg_cholesky(inner + identity)

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def variance(self):
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self):
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @lazy_property
    def scale_tril(self):
        return flambeau.linalg_cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self):
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        half = flambeau.linalg_solve_triangular(self._capacitance_root, scaled, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - half.mT @ half

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        along = flambeau.randn((*shape[:-1], self.cov_factor.shape[-1], 1), **options)
        return (self.loc + (self.cov_factor @ along).squeeze(-1)
                + self.cov_diag.sqrt() * flambeau.randn(shape, **options))

    def log_prob(self, value):
        self._validate_sample(value)
        off = value - self.loc
        scaled = off / self.cov_diag
        inner = flambeau.linalg_solve_triangular(
            self._capacitance_root, self.cov_factor.mT @ scaled.unsqueeze(-1), upper=False)
        size = (off * scaled).sum(-1) - inner.square().sum((-2, -1))
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + size)

    def _log_det(self):
        root = self._capacitance_root.diagonal(dim1=-2, dim2=-1)
        return 2 * root.log().sum(-1) + self.cov_diag.log().sum(-1)

    def entropy(self):
        return 0.5 * (self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det())
