"""Distributions of matrices: Wishart, and of correlations by their Cholesky factors."""
import math
import warnings

import flambeau
from flambeau import Tensor

from . import constraints
from .distribution import Distribution, broadcast_all
from .exp_family import ExponentialFamily
from .gammas import Beta
from .multivariate_normal import _inverse_of_lower, _root_of_inverse
from .utils import lazy_property

__all__ = ["LKJCholesky", "Wishart"]


class Wishart(ExponentialFamily):
    """The sum of df squares x x^T of normal vectors x: df, and one of the covariance, its inverse
    (precision), or its Cholesky factor scale_tril. df need not be whole, but is above the number of rows less
    1.
    """

    arg_constraints = {"df": constraints.greater_than(0), "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky}
    support, has_rsample = constraints.positive_definite, True

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None,
                 validate_args=None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
                 "scale_tril": scale_tril}
        given = {k: v for k, v in given.items() if v is not None}
        if len(given) != 1:
            raise ValueError("Give one of covariance_matrix, precision_matrix and scale_tril, and only one.")
        (name, matrix), = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch "
                             "dimensions")
        if not isinstance(df, Tensor):
            df = matrix.new_full((), df)
        rows = matrix.shape[-1]
        batch = flambeau.broadcast_shapes(df.shape, matrix.shape[:-2])
        self.df = df.expand(batch)
        if bool((df <= rows - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {rows - 1}.")
        setattr(self, name, matrix.expand(*batch, *matrix.shape[-2:]))
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        if bool((df < rows).any()):
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 "
                          "< df < ndim.", stacklevel=2)
        if name == "precision_matrix":
            root = _root_of_inverse(precision_matrix)
        else:
            root = matrix if name == "scale_tril" else flambeau.linalg_cholesky(matrix)
        self._root = root.expand(*batch, *root.shape[-2:])

    @lazy_property
    def scale_tril(self):
        return self._root

    @lazy_property
    def covariance_matrix(self):
        return self._root @ self._root.mT

    @lazy_property
    def precision_matrix(self):
        inverse = _inverse_of_lower(self._root)
        return inverse.mT @ inverse

    def expand(self, batch_shape, _instance=None):
        return Wishart(self.df.expand(batch_shape),
                       scale_tril=self._root.expand(*batch_shape, *self._event_shape), validate_args=False)

    @property
    def mean(self):
        return self._per_matrix(self.df) * self.covariance_matrix

    @property
    def mode(self):
        """Not a number where df is at most the number of rows plus 1."""
        factor = self.df - self._event_shape[0] - 1
        return self._per_matrix(flambeau.where(factor > 0, factor, math.nan)) * self.covariance_matrix

    @property
    def variance(self):
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._per_matrix(self.df) * (covariance.square() + products)

    def rsample(self, sample_shape=(), max_try_correction=None):
        """By Bartlett's decomposition, once more where a draw is singular: at most max_try_correction times.
        """
        if max_try_correction is None:
            max_try_correction = 3 if self._event_shape[0] < 5 else 10
        draws = self._bartlett(sample_shape)
        for _ in range(max_try_correction):
            singular = ~self.support.check(draws)
            if not bool(singular.any()):
                break
            draws = flambeau.where(self._per_matrix(singular), self._bartlett(sample_shape), draws)
        return draws

    def _bartlett(self, sample_shape):
        shape = self._extended_shape(sample_shape)
        halves = self._halves(self.df).expand(shape[:-1])
        tiny = flambeau.finfo(halves.dtype).tiny
        diagonal = (2 * flambeau._standard_gamma(halves)).clamp(min=tiny).sqrt()
        below = flambeau.randn(shape, dtype=halves.dtype, device=halves.device).tril(-1)
        root = self._root @ (below + diagonal.diag_embed())
        return root @ root.mT

    def log_prob(self, value):
        self._validate_sample(value)
        rows = self._event_shape[0]
        log_det = flambeau.linalg_slogdet(value).logabsdet
        inverse = _inverse_of_lower(self._root)
        trace = ((inverse @ value) * inverse).sum((-2, -1))
        constant = self.df * (rows * math.log(2) + self._log_det())
        return 0.5 * ((self.df - rows - 1) * log_det - trace - constant) - (0.5 * self.df).mvlgamma(rows)

    def entropy(self):
        rows, df = self._event_shape[0], self.df
        return (0.5 * (rows + 1) * (self._log_det() + rows * math.log(2)) + (0.5 * df).mvlgamma(rows)
                - 0.5 * (df - rows - 1) * self._digammas() + 0.5 * df * rows)

    def _log_det(self):
        """Of the covariance."""
        return 2 * self._root.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def _digammas(self):
        """The derivative of the logarithm of the multivariate gamma function at df / 2."""
        return self._halves(self.df).digamma().sum(-1)

    def _halves(self, df):
        """(df - i) / 2 for each row i."""
        return 0.5 * (df.unsqueeze(-1) - flambeau.arange(self._event_shape[0], dtype=df.dtype,
                                                         device=df.device))

    @staticmethod
    def _per_matrix(values):
        return values.unsqueeze(-1).unsqueeze(-1)


class LKJCholesky(Distribution):
    """Cholesky factors of correlations of dim variables, of a density that grows as
    |correlations|^(concentration - 1): all correlations are as likely for a concentration of 1 (Lewandowski,
    Kurowicka and Joe, 2009).
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration, = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return LKJCholesky(self.dim, self.concentration.expand(batch_shape), validate_args=False)

    def sample(self, sample_shape=()):
        """Row by row: the square of its part below the diagonal is a Beta draw, its direction is uniform."""
        shape, options = self._extended_shape(sample_shape), _options(self.concentration)
        with flambeau.no_grad():
            before = flambeau.arange(1, self.dim, **options)
            above = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 1 - before)
            lengths = Beta((0.5 * before).expand(above.shape), above,
                           validate_args=False).sample(sample_shape)
            directions = flambeau.randn(shape, **options).tril(-1)[..., 1:, :]
            directions = directions / directions.norm(dim=-1, keepdim=True)
            first = directions.new_zeros((*shape[:-2], 1, self.dim))
            below = flambeau.cat([first, lengths.unsqueeze(-1).sqrt() * directions], -2)
            tiny = flambeau.finfo(below.dtype).tiny
            return below + (1 - below.square().sum(-1)).clamp(min=tiny).sqrt().diag_embed()

    def log_prob(self, value):
        self._validate_sample(value)
        dim, concentration = self.dim, self.concentration
        order = 2 * (concentration - 1).unsqueeze(-1) + flambeau.arange(dim - 2, -1, -1,
                                                                        **_options(concentration))
        density = (order * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        alpha = concentration + 0.5 * (dim - 1)
        return (density - 0.5 * (dim - 1) * math.log(math.pi) - (alpha - 0.5).mvlgamma(dim - 1)
                + (dim - 1) * alpha.lgamma())


def _options(like):
    return {"dtype": like.dtype, "device": like.device}
