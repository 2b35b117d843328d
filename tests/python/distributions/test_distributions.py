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
]


@pytest.mark.parametrize("ours, scipy", CASES, ids=[type(c[0]).__name__ for c in CASES])
def test_continuous(ours, scipy):
    fl.manual_seed(0)
    draws = ours.sample((20000,))
    x = draws[:50].double().numpy()
    np.testing.assert_allclose(ours.log_prob(draws[:50]).numpy(), scipy.logpdf(x), rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(ours.cdf(draws[:50]).numpy(), scipy.cdf(x), rtol=1e-4, atol=1e-5)
    q = fl.tensor([0.1, 0.5, 0.9])
    np.testing.assert_allclose(ours.icdf(q).numpy(), scipy.ppf(q.numpy()), rtol=1e-3)
    np.testing.assert_allclose(ours.entropy().item(), scipy.entropy(), rtol=1e-4)
    if not isinstance(ours, D.Cauchy):
        np.testing.assert_allclose([ours.mean.item(), ours.variance.item()], [scipy.mean(), scipy.var()],
                                   rtol=1e-4)
        np.testing.assert_allclose(draws.mean().item(), scipy.mean(), atol=0.1)
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
    (D.LogNormal(0.0, 1.0), D.LogNormal(1.0, 2.0)),
], ids=lambda d: type(d).__name__)
def test_divergence(p, q):
    fl.manual_seed(0)
    x = p.sample((40000,))
    estimate = (p.log_prob(x) - q.log_prob(x)).mean().item()
    assert abs(D.kl_divergence(p, q).item() - estimate) < 0.05
    assert abs(D.kl_divergence(p, p).item()) < 1e-5


def test_refuses():
    with pytest.raises(ValueError, match="parameter scale"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="support"):
        D.Exponential(1.0).log_prob(fl.tensor(-1.0))
    with pytest.raises(ValueError, match="not both"):
        D.Bernoulli()
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Exponential(1.0))
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
