"""Wishart against SciPy; Cholesky factors of correlations against their marginals."""
import numpy as np
import pytest
from scipy import stats

import flambeau as fl
from flambeau import distributions as D

COVARIANCE = fl.tensor([[2.0, 0.3, -0.5], [0.3, 1.0, 0.2], [-0.5, 0.2, 0.7]], dtype=fl.float64)


@pytest.mark.parametrize("given", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_wishart(given):
    fl.manual_seed(0)
    matrix = {"covariance_matrix": COVARIANCE, "precision_matrix": fl.linalg_inv(COVARIANCE),
              "scale_tril": fl.linalg_cholesky(COVARIANCE)}[given]
    ours, scipy = D.Wishart(5.5, **{given: matrix}), stats.wishart(5.5, COVARIANCE.numpy())
    draws = ours.sample((20000,))
    x = draws[:20].numpy()
    np.testing.assert_allclose(ours.log_prob(draws[:20]).numpy(), scipy.logpdf(x.transpose(1, 2, 0)),
                               rtol=1e-9)
    np.testing.assert_allclose(ours.entropy().item(), scipy.entropy(), rtol=1e-9)
    for got, expected in ((ours.mean, scipy.mean()), (ours.variance, scipy.var()), (ours.mode, scipy.mode())):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(draws.mean(0).numpy(), scipy.mean(), atol=0.15)
    np.testing.assert_allclose(draws.var(0).numpy(), scipy.var(), rtol=0.1)
    np.testing.assert_allclose(ours.precision_matrix.numpy(), np.linalg.inv(COVARIANCE.numpy()), rtol=1e-9)
    grown = ours.expand((2, 4))
    assert grown.batch_shape == (2, 4) and grown.sample((3,)).shape == (3, 2, 4, 3, 3)
    np.testing.assert_array_equal(grown.log_prob(draws[0])[1, 2].numpy(), ours.log_prob(draws[0]).numpy())


def test_wishart_of_few_degrees():
    identity = fl.eye(3)
    with pytest.raises(ValueError, match="greater than ndim - 1 = 2"):
        D.Wishart(2.0, identity)
    with pytest.warns(UserWarning, match="Low df"):
        few = D.Wishart(fl.tensor([2.5, 6.0]), identity)
    assert fl.isnan(few.mode[0]).all() and not fl.isnan(few.mode[1]).any()
    with pytest.raises(ValueError, match="only one"):
        D.Wishart(4.0)
    with pytest.raises(ValueError, match="two-dimensional"):
        D.Wishart(4.0, fl.ones(3))


def test_wishart_gradients_and_divergence():
    fl.manual_seed(0)
    df, root = fl.tensor(5.0, requires_grad=True), fl.eye(2).requires_grad_()
    D.Wishart(df, scale_tril=root).rsample((2000,)).diagonal(dim1=1, dim2=2).sum().div(2000).backward()
    assert abs(df.grad - 2) < 0.1 and fl.allclose(root.grad.diagonal(), fl.tensor(10.0), atol=0.7)
    p, q = D.Wishart(5.5, COVARIANCE), D.Wishart(4.0, fl.eye(3, dtype=fl.float64))
    draws = p.sample((20000,))
    ratios = p.log_prob(draws) - q.log_prob(draws)
    assert abs(D.kl_divergence(p, q) - ratios.mean()) < 5 * ratios.std() / 20000**0.5
    assert D.kl_divergence(p, p).abs() < 1e-12


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_correlations(dim):
    """Every correlation, scaled to 0 ... 1, is from Beta(c - 1 + dim / 2, the same)."""
    fl.manual_seed(0)
    concentrations = fl.tensor([0.5, 1.0, 3.0], dtype=fl.float64)
    ours = D.LKJCholesky(dim, concentrations)
    roots = ours.sample((4000,))
    assert roots.shape == (4000, 3, dim, dim) and bool(ours.support.check(roots).all())
    correlations = (roots @ roots.mT).numpy()
    for i, c in enumerate(concentrations.tolist()):
        marginal = stats.beta(c - 1 + dim / 2, c - 1 + dim / 2, -1, 2)
        for row, column in zip(*np.tril_indices(dim, -1)):
            assert stats.kstest(correlations[:, i, row, column], marginal.cdf).pvalue > 1e-4
    assert ours.expand((2, 3)).log_prob(roots[:1]).shape == (2, 3)


def test_density_of_correlations():
    """Of two variables: r is from Beta(c, c), and the root's entries are r and (1 - r^2)^(1/2)."""
    r = fl.linspace(-0.9, 0.9, 7, dtype=fl.float64)
    zero, one = fl.zeros_like(r), fl.ones_like(r)
    roots = fl.stack([one, zero, r, (1 - r * r).sqrt()], -1).reshape(7, 2, 2)
    got = D.LKJCholesky(2, fl.tensor(2.5, dtype=fl.float64)).log_prob(roots)
    np.testing.assert_allclose(got.numpy(), stats.beta(2.5, 2.5, -1, 2).logpdf(r.numpy()), rtol=1e-9)
    with pytest.raises(ValueError, match="greater than or equal to 2"):
        D.LKJCholesky(1)
    with pytest.raises(ValueError, match="concentration"):
        D.LKJCholesky(3, -1.0)
