"""Probability distributions: sample, rsample, log_prob, entropy, and KL divergences."""
from . import constraints, kl, transforms
from .bernoulli import Bernoulli
from .categorical import Categorical, OneHotCategorical
from .distribution import Distribution
from .independent import Independent
from .kl import kl_divergence, register_kl
from .mixture import MixtureSameFamily
from .multivariate_normal import MultivariateNormal
from .normal import HalfNormal, LogNormal, Normal
from .transformed_distribution import TransformedDistribution
from .transforms import (AffineTransform, ComposeTransform, ExpTransform, SigmoidTransform, SoftmaxTransform,
                         TanhTransform, Transform, identity_transform)
from .univariate import Cauchy, Exponential, Geometric, Gumbel, Laplace, Poisson, Uniform

__all__ = ["AffineTransform", "Bernoulli", "Categorical", "Cauchy", "ComposeTransform", "Distribution",
           "ExpTransform",
           "Exponential", "Geometric", "Gumbel", "HalfNormal", "Independent", "Laplace", "LogNormal",
           "MixtureSameFamily",
           "MultivariateNormal", "Normal", "OneHotCategorical", "Poisson", "SigmoidTransform",
           "SoftmaxTransform",
           "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "constraints",
           "identity_transform",
           "kl_divergence", "register_kl", "transforms"]
