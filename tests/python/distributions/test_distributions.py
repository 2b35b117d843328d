"""Densities against SciPy, moments of draws, and divergences against their definition."""
import numpy as np
import pytest
from scipy import stats

import flambeau as fl
from flambeau import distributions as D

CASES = [
    (D.Normal(1.0, 2.0), stats.norm(1, 2)), (D.Uniform(-1.0, 3.0), stats.uniform(-1, 4)),
    (D.Exponential(2.0), stats.expon(scale=0.5)), (D.Laplace(0.5, 1.5), stats.laplace(0.5, 1.5)),
    (D.Gumbel(0.5, 1.5), stats.gumbel_r(0.5, 1.5)),
    (D.LogNormal(0.1, 0.4), stats.lognorm(0.4, scale=np.exp(0.1))),
    (D.HalfNormal(1.5), stats.halfnorm(scale=1.5)), (D.Cauchy(0.5, 2.0), stats.cauchy(0.5, 2)),
    (D.HalfCauchy(2.0), stats.halfcauchy(scale=2)), (D.Pareto(1.5, 3.0), stats.pareto(3, scale=1.5)),
    (D.Weibull(2.0, 1.5), stats.weibull_min(1.5, scale=2)), (D.Gamma(2.5, 2.0), stats.gamma(2.5, scale=0.5)),
    (D.Chi2(fl.tensor(3.0)), stats.chi2(3)), (D.InverseGamma(3.5, 2.0), stats.invgamma(3.5, scale=2)),
    (D.Beta(0.7, 2.0), stats.beta(0.7, 2)), (D.StudentT(5.0, 1.0, 2.0), stats.t(5, 1, 2)),
    (D.FisherSnedecor(4.0, 9.0), stats.f(4, 9)),
    (D.GeneralizedPareto(1.0, 2.0, 0.2), stats.genpareto(0.2, 1, 2)),
    (D.GeneralizedPareto(1.0, 2.0, 0.0), stats.expon(1, 2)),
    (D.GeneralizedPareto(1.0, 2.0, -0.5), stats.genpareto(-0.5, 1, 2)),
]


def has(distribution, what):
    """Whether a method is there; PyTorch has no cdf, icdf or entropy of some."""
    return getattr(type(distribution), what) is not getattr(D.Distribution, what)


@pytest.mark.parametrize("ours, scipy", CASES, ids=[type(c[0]).__name__ for c in CASES])
def test_continuous(ours, scipy):
    fl.manual_seed(0)
    draws = ours.sample((20000,))
    x = draws[:50].double().numpy()
    np.testing.assert_allclose(ours.log_prob(draws[:50]).numpy(), scipy.logpdf(x), rtol=2e-4, atol=2e-4)
    q = fl.tensor([0.1, 0.5, 0.9])
    if has(ours, "cdf"):
        np.testing.assert_allclose(ours.cdf(draws[:50]).numpy(), scipy.cdf(x), rtol=1e-4, atol=1e-5)
    if has(ours, "icdf"):
        np.testing.assert_allclose(ours.icdf(q).numpy(), scipy.ppf(q.numpy()), rtol=1e-3)
    if has(ours, "entropy"):
        np.testing.assert_allclose(ours.entropy().item(), scipy.entropy(), rtol=1e-4)
    if not isinstance(ours, (D.Cauchy, D.HalfCauchy)):
        np.testing.assert_allclose([ours.mean.item(), ours.variance.item()], [scipy.mean(), scipy.var()],
                                   rtol=1e-4)
        np.testing.assert_allclose(draws.mean().item(), scipy.mean(), atol=6 * scipy.std() / 20000**0.5)
    assert stats.kstest(draws[:2000].numpy(), scipy.cdf).pvalue > 1e-3


def test_discrete():
    fl.manual_seed(0)
    b = D.Bernoulli(fl.tensor([0.2, 0.9]))
    np.testing.assert_allclose(b.sample((5000,)).mean(0).numpy(), [0.2, 0.9], atol=0.03)
    np.testing.assert_allclose(b.log_prob(fl.tensor([1.0, 0.0])).exp().numpy(), [0.2, 0.1], rtol=1e-5)
    assert b.enumerate_support().tolist() == [[0, 0], [1, 1]]
    c = D.Categorical(fl.tensor([[1.0, 3.0], [2.0, 2.0]]))
    assert c.sample((7, 3)).shape == (7, 3, 2)
    np.testing.assert_allclose(c.sample((5000,)).double().mean(0).numpy(), [0.75, 0.5], atol=0.03)
    np.testing.assert_allclose(c.log_prob(fl.tensor([0, 1])).exp().numpy(), [0.25, 0.5], rtol=1e-5)
    np.testing.assert_allclose(c.entropy().numpy(), [stats.entropy([0.25, 0.75]), np.log(2)], rtol=1e-5)
    g = D.Geometric(fl.tensor(0.3))
    np.testing.assert_allclose(g.log_prob(fl.tensor([0.0, 4.0])).numpy(),
                               stats.geom(0.3, loc=-1).logpmf([0, 4]), rtol=1e-4)
    np.testing.assert_allclose(g.sample((5000,)).mean().item(), 0.7 / 0.3, atol=0.15)
    p = D.Poisson(fl.tensor(2.5))
    np.testing.assert_allclose(p.log_prob(fl.tensor([0.0, 4.0])).numpy(), stats.poisson(2.5).logpmf([0, 4]),
                               rtol=1e-4)
    hot = D.OneHotCategorical(fl.tensor([0.5, 0.5])).sample((4,))
    assert hot.shape == (4, 2) and (hot.sum(-1) == 1).all()


def test_gradients_reach_the_parameters():
    loc, scale = fl.tensor(1.0, requires_grad=True), fl.tensor(2.0, requires_grad=True)
    draw = D.Normal(loc, scale).rsample((100,))
    draw.sum().backward()
    assert loc.grad.item() == 100 and abs(scale.grad.item() - ((draw.detach() - 1) / 2).sum().item()) < 1e-3
    assert not D.Normal(loc, scale).sample().requires_grad


def test_independent_and_expand():
    base = D.Normal(fl.zeros(3, 4), fl.ones(3, 4))
    d = D.Independent(base, 1)
    assert d.batch_shape == (3,) and d.event_shape == (4,) and d.log_prob(fl.zeros(3, 4)).shape == (3,)
    assert D.Normal(fl.zeros(4), fl.ones(4)).expand((3, 4)).sample((2,)).shape == (2, 3, 4)
    assert D.Categorical(fl.ones(5)).expand((2,)).sample().shape == (2,)


def test_transforms():
    d = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.AffineTransform(1.0, -2.0), D.ExpTransform()])
    x = fl.tensor([0.5, 2.0])
    expected = stats.lognorm(2, scale=np.exp(1)).logpdf(x.numpy())
    np.testing.assert_allclose(d.log_prob(x).numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(d.cdf(x).numpy(), stats.lognorm(2, scale=np.exp(1)).cdf(x.numpy()), rtol=1e-5)
    for t in (D.SigmoidTransform(), D.TanhTransform(), D.ExpTransform(), D.AffineTransform(1.0, 3.0)):
        z = fl.tensor([0.3, -0.7], dtype=fl.float64, requires_grad=True)
        y = t(z)
        np.testing.assert_allclose(t.inv(y).detach().numpy(), z.detach().numpy(), rtol=1e-8)
        slope, = fl.autograd.grad(y.sum(), z)
        np.testing.assert_allclose(t.log_abs_det_jacobian(z, y).detach().numpy(),
                                   np.log(np.abs(slope.numpy())), rtol=1e-6)


def test_mixture():
    d = D.MixtureSameFamily(D.Categorical(fl.tensor([0.3, 0.7])),
                            D.Normal(fl.tensor([0.0, 5.0]), fl.tensor([1.0, 0.5])))
    fl.manual_seed(0)
    assert abs(d.sample((5000,)).mean().item() - d.mean.item()) < 0.15
    expected = np.log(0.3 * stats.norm(0, 1).pdf(1.0) + 0.7 * stats.norm(5, 0.5).pdf(1.0))
    assert abs(d.log_prob(fl.tensor(1.0)).item() - expected) < 1e-4


@pytest.mark.parametrize("p, q", [
    (D.Normal(0.0, 1.0), D.Normal(1.0, 2.0)), (D.Exponential(2.0), D.Exponential(1.0)),
    (D.Laplace(0.0, 1.0), D.Laplace(0.5, 2.0)), (D.Bernoulli(0.3), D.Bernoulli(0.6)),
    (D.Categorical(fl.tensor([0.2, 0.8])), D.Categorical(fl.tensor([0.5, 0.5]))),
    (D.Uniform(0.0, 1.0), D.Uniform(-1.0, 2.0)), (D.Poisson(2.0), D.Poisson(3.0)),
    (D.LogNormal(0.0, 1.0), D.LogNormal(1.0, 2.0)), (D.Gamma(2.0, 1.0), D.Gamma(3.0, 2.0)),
    (D.Beta(2.0, 3.0), D.Beta(1.0, 1.5)), (D.HalfNormal(1.0), D.HalfNormal(2.0)),
    (D.Dirichlet(fl.tensor([1.0, 2.0, 3.0])), D.Dirichlet(fl.tensor([2.0, 2.0, 2.0]))),
    (D.Binomial(5, fl.tensor(0.3)), D.Binomial(5, fl.tensor(0.4))), (D.Geometric(0.4), D.Geometric(0.3)),
    (D.Cauchy(0.0, 1.0), D.Cauchy(0.5, 2.0)), (D.Gumbel(0.0, 1.0), D.Gumbel(0.5, 1.5)),
    (D.Pareto(2.0, 3.0), D.Pareto(1.0, 2.0)), (D.InverseGamma(3.0, 1.0), D.InverseGamma(2.0, 2.0)),
    (D.ContinuousBernoulli(0.3), D.ContinuousBernoulli(0.6)), (D.HalfCauchy(1.0), D.HalfCauchy(2.0)),
], ids=lambda d: type(d).__name__)
def test_divergence(p, q):
    fl.manual_seed(0)
    x = p.sample((40000,))
    estimate = (p.log_prob(x) - q.log_prob(x)).mean().item()
    assert abs(D.kl_divergence(p, q).item() - estimate) < 0.05
    assert abs(D.kl_divergence(p, p).item()) < 1e-5


@pytest.mark.parametrize("p, q", [
    (D.Exponential(2.0), D.Gamma(2.0, 1.0)), (D.Gamma(2.0, 1.0), D.Exponential(2.0)),
    (D.Uniform(0.0, 1.0), D.Normal(0.3, 1.0)), (D.Gamma(2.0, 2.0), D.Normal(0.3, 1.0)),
    (D.Laplace(0.0, 1.0), D.Normal(0.3, 2.0)), (D.Normal(0.0, 1.0), D.Laplace(0.5, 2.0)),
    (D.Beta(2.0, 3.0), D.Exponential(1.0)), (D.Beta(2.0, 3.0), D.Gamma(2.0, 1.0)),
    (D.LowRankMultivariateNormal(fl.zeros(2), fl.ones(2, 1), fl.ones(2)),
     D.MultivariateNormal(fl.ones(2), 2 * fl.eye(2))),
], ids=lambda d: type(d).__name__)
def test_divergence_of_two_kinds(p, q):
    fl.manual_seed(0)
    x = p.sample((40000,))
    assert abs(D.kl_divergence(p, q).item() - (p.log_prob(x) - q.log_prob(x)).mean().item()) < 0.05


def test_divergence_from_what_draws_more_is_infinite():
    for p, q in ((D.Normal(0.0, 1.0), D.Exponential(1.0)), (D.Gamma(1.0, 1.0), D.Beta(1.0, 1.0)),
                 (D.Poisson(1.0), D.Bernoulli(0.5))):
        assert D.kl_divergence(p, q).item() == np.inf


def test_numbers_of_successes():
    x = fl.tensor([0.0, 2.0, 4.0])
    for ours, scipy in ((D.Binomial(6, fl.tensor(0.3)), stats.binom(6, 0.3)),
                        (D.Binomial(6, logits=fl.tensor(1.0)), stats.binom(6, 1 / (1 + np.exp(-1)))),
                        (D.NegativeBinomial(3.5, fl.tensor(0.3)), stats.nbinom(3.5, 0.7))):
        fl.manual_seed(0)
        np.testing.assert_allclose(ours.log_prob(x).numpy(), scipy.logpmf(x.numpy()), rtol=1e-4)
        draws = ours.sample((20000,))
        for got, exact, sampled in ((ours.mean, scipy.mean(), draws.mean()),
                                    (ours.variance, scipy.var(), draws.var())):
            np.testing.assert_allclose(got.item(), exact, rtol=1e-4)
            np.testing.assert_allclose(sampled.item(), exact, rtol=0.05)
    np.testing.assert_allclose(D.Binomial(6, fl.tensor(0.3)).entropy().item(), stats.binom(6, 0.3).entropy(),
                               rtol=1e-4)
    weights = [0.2, 0.3, 0.5]
    ours, scipy = D.Multinomial(4, fl.tensor(weights)), stats.multinomial(4, weights)
    draws = ours.sample((5000,))
    assert (draws.sum(-1) == 4).all() and ours.sample((2, 3)).shape == (2, 3, 3)
    np.testing.assert_allclose(draws.mean(0).numpy(), [0.8, 1.2, 2.0], atol=0.08)
    np.testing.assert_allclose(ours.log_prob(draws[0]).item(), scipy.logpmf(draws[0].numpy()), rtol=1e-4)
    np.testing.assert_allclose(ours.entropy().item(), scipy.entropy(), rtol=1e-4)


def test_distributions_of_vectors():
    fl.manual_seed(0)
    c = np.array([0.5, 2.0, 3.0])
    ours, scipy = D.Dirichlet(fl.tensor([0.5, 2.0, 3.0])), stats.dirichlet(c)
    draws = ours.sample((20000,))
    np.testing.assert_allclose(draws.mean(0).numpy(), scipy.mean(), atol=0.02)
    x = fl.tensor([0.2, 0.3, 0.5])
    np.testing.assert_allclose(ours.log_prob(x).item(), scipy.logpdf([0.2, 0.3, 0.5]), rtol=1e-4)
    np.testing.assert_allclose(ours.entropy().item(), scipy.entropy(), rtol=1e-4)
    np.testing.assert_allclose(ours.variance.numpy(), scipy.var(), rtol=1e-4)
    w, d, loc = fl.tensor([[1.0], [0.5], [0.2]]), fl.tensor([1.0, 2.0, 3.0]), fl.tensor([0.0, 1.0, 2.0])
    low = D.LowRankMultivariateNormal(loc, w, d)
    full = D.MultivariateNormal(loc, low.covariance_matrix)
    np.testing.assert_allclose(low.log_prob(x).item(), full.log_prob(x).item(), rtol=1e-5)
    np.testing.assert_allclose(low.entropy().item(), full.entropy().item(), rtol=1e-5)
    np.testing.assert_allclose(low.precision_matrix.numpy(), full.precision_matrix.numpy(), atol=1e-5)
    np.testing.assert_allclose(np.cov(low.sample((40000,)).numpy().T), low.covariance_matrix.numpy(),
                               atol=0.1)


def test_von_mises():
    fl.manual_seed(0)
    for k in (0.1, 1.0, 30.0):
        ours, scipy = D.VonMises(fl.tensor(0.5), fl.tensor(k)), stats.vonmises(k, loc=0.5)
        draws = ours.sample((20000,)).double().numpy()
        np.testing.assert_allclose(ours.log_prob(fl.tensor(1.0)).item(), scipy.logpdf(1.0), rtol=1e-4)
        turned = (draws - 0.5 + np.pi) % (2 * np.pi) - np.pi
        assert stats.kstest(turned, stats.vonmises(k).cdf).pvalue > 1e-4
        assert abs(np.cos(turned).mean() - (1 - ours.variance.item())) < 0.02


def test_continuous_bernoulli_and_kumaraswamy():
    """Densities are the slopes of the distribution functions, and their integral is 1."""
    x = fl.linspace(0.05, 0.95, 19, dtype=fl.float64).requires_grad_()
    p = fl.tensor([[0.1], [0.4995], [0.8]], dtype=fl.float64)
    ours = (D.ContinuousBernoulli(p), D.Kumaraswamy(fl.tensor(2.0, dtype=fl.float64), 3.0))
    for d in ours:
        slope, = fl.autograd.grad(d.cdf(x).sum(), x)
        total = d.log_prob(x).exp().reshape(-1, 19).sum(0)
        np.testing.assert_allclose(slope.numpy(), total.detach().numpy(), rtol=1e-3)
        np.testing.assert_allclose(d.icdf(d.cdf(x)).detach().expand(3, 19).numpy(),
                                   x.detach().expand(3, 19).numpy(), rtol=1e-5)
        draws = d.sample((20000,))
        np.testing.assert_allclose(draws.mean(0).numpy(), d.mean.numpy(), atol=0.01)
        np.testing.assert_allclose(draws.var(0).numpy(), d.variance.numpy(), atol=0.01)


def test_relaxed_classes():
    fl.manual_seed(0)
    logits = fl.tensor([0.1, 1.0, -0.5], requires_grad=True)
    d = D.RelaxedOneHotCategorical(fl.tensor(0.3), logits=logits)
    draws = d.rsample((4000,))
    assert draws.requires_grad and d.event_shape == (3,) and d.log_prob(draws.detach()).shape == (4000,)
    chosen = fl.nn.functional.one_hot(draws.argmax(-1), 3).double().mean(0)
    np.testing.assert_allclose(chosen.numpy(), logits.detach().softmax(0).numpy(), atol=0.03)
    b = D.RelaxedBernoulli(fl.tensor(0.3), fl.tensor([0.2, 0.9]))
    np.testing.assert_allclose((b.sample((4000,)) > 0.5).double().mean(0).numpy(), [0.2, 0.9], atol=0.03)
    grid = fl.linspace(-80, 80, 20001)[:, None]
    areas = fl.trapezoid(b.base_dist.log_prob(grid).exp(), grid, dim=0)
    np.testing.assert_allclose(areas.numpy(), 1, rtol=1e-3)
    x = fl.tensor(0.7, dtype=fl.float64, requires_grad=True)
    slope, = fl.autograd.grad((x.log() - (-x).log1p()), x)
    expected = b.base_dist.log_prob((x / (1 - x)).log()) + slope.log()
    np.testing.assert_allclose(b.log_prob(x).detach().numpy(), expected.detach().numpy(), rtol=1e-5)
    through = D.OneHotCategoricalStraightThrough(logits=logits).rsample()
    (through * fl.arange(3.0)).sum().backward()
    assert logits.grad.abs().sum() > 0


def test_parameters_that_were_asked_for_do_not_hinder_expand():
    for d in (D.Bernoulli(logits=fl.zeros(2)), D.Categorical(fl.ones(2, 3)), D.Geometric(fl.ones(2) / 2),
              D.Binomial(3, fl.ones(2) / 2), D.NegativeBinomial(3, logits=fl.zeros(2))):
        assert d.probs is not None and d.logits is not None
        assert d.expand((4, 2)).sample().shape == (4, 2)


JACOBIANS = [
    (D.PowerTransform(2.5), [0.5, 2.0]), (D.SoftplusTransform(), [0.3, -0.7]),
    (D.StickBreakingTransform(), [0.3, -0.7, 0.1]), (D.CorrCholeskyTransform(), [0.3, -0.7, 0.1]),
    (D.CumulativeDistributionTransform(D.Normal(0.0, 1.0)), [0.3, -0.7]),
    (D.IndependentTransform(D.ExpTransform(), 1), [0.3, -0.7]),
    (D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.SigmoidTransform()]), [0.3, -0.7]),
    (D.CatTransform([D.ExpTransform(), D.TanhTransform()], 0, [2, 1]), [0.3, -0.7, 0.2]),
    (D.StackTransform([D.ExpTransform(), D.TanhTransform()], 0), [0.3, -0.7]),
]


@pytest.mark.parametrize("t, x", JACOBIANS, ids=[type(t).__name__ for t, _ in JACOBIANS])
def test_changes_of_volume(t, x):
    x = fl.tensor(x, dtype=fl.float64)
    y = t(x)
    np.testing.assert_allclose(t.inv(y).numpy(), x.numpy(), rtol=1e-6)
    assert tuple(t.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(t.inv.forward_shape(y.shape)) == (len(x),)
    jacobian = fl.func.jacrev(t)(x)
    free = {"StickBreakingTransform": lambda j: j[:-1],  # the last element follows from the others
            "CorrCholeskyTransform": lambda j: j[tuple(fl.tril_indices(3, 3, -1))]}
    jacobian = free.get(type(t).__name__, lambda j: j)(jacobian)
    volume = t.log_abs_det_jacobian(x, y)
    np.testing.assert_allclose(volume.sum().item(), fl.linalg.slogdet(jacobian)[1].item(), rtol=1e-6)


def test_transforms_of_shapes_and_matrices():
    x = fl.tensor([[1.0, -2.0], [0.3, 0.4]])
    flat = D.ReshapeTransform((2, 2), (4,))
    assert flat(x).shape == (4,) and fl.equal(flat.inv(flat(x)), x) and flat.forward_shape((5, 2, 2)) == (5,
                                                                                                          4)
    with pytest.raises(ValueError, match="ends in"):
        flat.forward_shape((3, 3))
    assert D.AbsTransform()(x)[0].tolist() == [1, 2]
    with pytest.raises(NotImplementedError, match="log_abs_det_jacobian"):
        D.AbsTransform().log_abs_det_jacobian(x, x)
    spread = D.PositiveDefiniteTransform()(x)
    assert D.constraints.positive_definite.check(spread)
    np.testing.assert_allclose(D.PositiveDefiniteTransform().inv(spread).numpy(),
                               x.tril().numpy(), atol=1e-5)
    logistic = D.LogisticNormal(fl.tensor([0.1, 0.2]), fl.tensor([1.0, 2.0]))
    assert logistic.event_shape == (3,) and logistic.batch_shape == ()
    draw = logistic.sample((5,))
    np.testing.assert_allclose(draw.sum(-1).numpy(), 1, rtol=1e-5)
    assert logistic.log_prob(draw).shape == (5,) and logistic.expand((4,)).sample().shape == (4, 3)


def test_transforms_onto_sets():
    x = fl.tensor([0.3, -0.7, 0.1])
    c = D.constraints
    for constraint in (c.real, c.positive, c.nonnegative, c.unit_interval, c.simplex, c.interval(-2.0, 3.0),
                       c.greater_than(1.0), c.less_than(1.0), c.corr_cholesky, c.real_vector,
                       c.independent(c.positive, 1)):
        for onto in (D.biject_to, D.transform_to):
            assert constraint.check(onto(constraint)(x)).all(), constraint
    assert c.lower_cholesky.check(D.transform_to(c.lower_cholesky)(x.diag()))
    with pytest.raises(NotImplementedError, match="no transform"):
        D.biject_to(c.boolean)


def test_refuses():
    with pytest.raises(ValueError, match="parameter scale"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="support"):
        D.Exponential(1.0).log_prob(fl.tensor(-1.0))
    with pytest.raises(ValueError, match="not both"):
        D.Bernoulli()
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1


@pytest.mark.skipif(not hasattr(fl, "linalg_cholesky"), reason="no linear algebra in this build")
def test_multivariate_normal():
    covariance = fl.tensor([[2.0, 0.5], [0.5, 1.0]])
    loc = fl.tensor([1.0, -1.0])
    reference = stats.multivariate_normal(loc.numpy(), covariance.numpy())
    for d in (D.MultivariateNormal(loc, covariance),
              D.MultivariateNormal(loc, scale_tril=fl.linalg_cholesky(covariance)),
              D.MultivariateNormal(loc, precision_matrix=fl.linalg_inv(covariance))):
        x = fl.tensor([[0.0, 0.0], [1.0, 2.0]])
        np.testing.assert_allclose(d.log_prob(x).numpy(), reference.logpdf(x.numpy()), rtol=1e-4)
        np.testing.assert_allclose(d.entropy().item(), reference.entropy(), rtol=1e-4)
        np.testing.assert_allclose(d.covariance_matrix.numpy(), covariance.numpy(), rtol=1e-4)
        assert d.sample((3,)).shape == (3, 2)
    other = D.MultivariateNormal(fl.zeros(2), fl.eye(2))
    assert D.kl_divergence(d, other).item() > 0 and abs(D.kl_divergence(d, d).item()) < 1e-4
