"""Probability distributions: sample, rsample, log_prob, entropy, and KL divergences."""
from . import constraints, kl, transforms
from .bernoulli import Bernoulli
from .categorical import Categorical, OneHotCategorical
from .circular import VonMises
from .constraint_registry import biject_to, transform_to
from .continuous_bernoulli import ContinuousBernoulli
from .counts import Binomial, Multinomial, NegativeBinomial
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .gammas import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, InverseGamma, StudentT
from .independent import Independent
from .kl import kl_divergence, register_kl
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .matrices import LKJCholesky, Wishart
from .mixture import MixtureSameFamily
from .multivariate_normal import MultivariateNormal
from .normal import HalfCauchy, HalfNormal, LogisticNormal, LogNormal, Normal
from .relaxed import OneHotCategoricalStraightThrough, RelaxedBernoulli, RelaxedOneHotCategorical
from .tails import GeneralizedPareto, Kumaraswamy, Pareto, Weibull
from .transformed_distribution import TransformedDistribution
from .transforms import *
from .univariate import Cauchy, Exponential, Geometric, Gumbel, Laplace, Poisson, Uniform

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2",
           "ContinuousBernoulli", "Dirichlet", "Distribution", "Exponential", "ExponentialFamily",
           "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy",
           "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace",
           "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial",
           "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
           "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli",
           "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "Uniform", "VonMises",
           "Weibull", "Wishart", "biject_to", "constraints", "kl_divergence", "register_kl", "transform_to",
           "transforms", *transforms.__all__]
