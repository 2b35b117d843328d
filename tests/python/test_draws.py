"""Samplers that reject: draws have the distribution, and the derivative is that of the quantile."""
import numpy as np
import pytest
from scipy import stats

import flambeau as torch

COUNT = 20000


def check_counts(draws, distribution):
    """A chi-square test over ten bins of about equal probability; fails by chance in 1 of 10^6 seeds."""
    assert draws.min() >= 0 and (draws == np.floor(draws)).all()
    ends = np.unique(distribution.ppf(np.linspace(0.1, 0.9, 9)))
    observed = np.histogram(draws, [-1, *(ends + 0.5), np.inf])[0]
    expected = np.diff([0, *distribution.cdf(ends), 1]) * COUNT
    assert stats.chisquare(observed, expected).pvalue > 1e-6


@pytest.mark.parametrize("rate", [0.3, 5.0, 9.99, 10.0, 40.0, 1e5])
def test_poisson(rate):
    torch.manual_seed(1)
    check_counts(torch.poisson(torch.full((COUNT,), rate)).double().numpy(), stats.poisson(rate))


@pytest.mark.parametrize("count, prob", [(10, 0.3), (200, 0.02), (50, 0.5), (1000, 0.97), (10**5, 0.4)])
def test_binomial(count, prob):
    torch.manual_seed(2)
    draws = torch.binomial(torch.full((COUNT,), float(count)), torch.tensor(prob))
    check_counts(draws.double().numpy(), stats.binom(count, prob))


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 3.0, 100.0])
def test_gamma(shape):
    torch.manual_seed(3)
    draws = torch._standard_gamma(torch.full((COUNT,), shape, dtype=torch.float64)).numpy()
    assert stats.kstest(draws, stats.gamma(shape).cdf).pvalue > 1e-6


@pytest.mark.parametrize("shape", [0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0, 1e4])
@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9, 0.999])
def test_derivative_of_gamma(shape, quantile):
    """What the quantile does as the shape grows."""
    h, at = 1e-4 * shape, stats.gamma.ppf(quantile, shape)
    expected = (stats.gamma.ppf(quantile, shape + h) - stats.gamma.ppf(quantile, shape - h)) / (2 * h)
    a, x = (torch.tensor(v, dtype=torch.float64) for v in (shape, at))
    found = torch._standard_gamma_grad(a, x).item()
    assert found == pytest.approx(expected, rel=1e-3 if shape < 0.1 else 2e-6)


def test_gradients_repeat_and_edges():
    a = torch.tensor([0.5, 2.0], requires_grad=True)
    drawn = torch._standard_gamma(a)
    drawn.sum().backward()
    assert drawn.dtype == torch.float32
    assert a.grad.tolist() == torch._standard_gamma_grad(a.detach(), drawn.detach()).tolist()
    assert torch._sample_dirichlet(torch.ones(5, 3)).sum(-1).tolist() == pytest.approx([1] * 5)
    generator = torch.Generator()
    draws = []
    for _ in range(2):
        generator.manual_seed(7)
        draws.append(torch.poisson(torch.tensor([3.0, 30.0] * 50), generator).tolist())
    assert draws[0] == draws[1]
    assert torch.poisson(torch.zeros(3)).tolist() == [0, 0, 0]
    assert torch.poisson(torch.ones(0, 2)).shape == (0, 2)
    ends = torch.binomial(torch.tensor([5.0, 5.0, 0.0]), torch.tensor([0.0, 1.0, 0.5]))
    assert ends.tolist() == [0, 5, 0]
    for call in (lambda: torch.poisson(torch.tensor([-1.0])), lambda: torch._standard_gamma(torch.zeros(1)),
                 lambda: torch.binomial(torch.ones(1), torch.tensor([2.0]))):
        with pytest.raises(RuntimeError):
            call()
