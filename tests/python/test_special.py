"""Special functions against SciPy on their whole domains, at the ends of these, and their gradients."""
import numpy as np
import pytest
from scipy import special

import flambeau as fl
from conversion import array

SMALL = np.concatenate([-np.logspace(-8, 1.3, 60), [0.0], np.logspace(-8, 1.3, 60)])
LARGE = np.concatenate([-np.logspace(1.3, 2.8, 60), np.logspace(1.3, 2.8, 60)])
POSITIVE = np.logspace(-8, 2.8, 150)
UNIT = np.concatenate([np.logspace(-300, -1, 60), np.linspace(0.1, 0.9, 50), 1 - np.logspace(-12, -1, 40)])

# Function, SciPy's, where, and how far apart: relative, and absolute near zeros of the oscillating ones.
FUNCTIONS = {
    "bessel_j0": (special.j0, np.concatenate([SMALL, LARGE]), 2e-14, 2e-15),
    "bessel_j1": (special.j1, np.concatenate([SMALL, LARGE]), 2e-14, 2e-15),
    "bessel_y0": (special.y0, POSITIVE, 2e-14, 2e-15),
    "bessel_y1": (special.y1, POSITIVE, 2e-14, 2e-15),
    "i0": (special.i0, np.concatenate([SMALL, LARGE]), 2e-14, 0),
    "i0e": (special.i0e, np.concatenate([SMALL, LARGE, [1e4, 1e6]]), 5e-15, 0),
    "i1": (special.i1, np.concatenate([SMALL, LARGE]), 2e-14, 0),
    "i1e": (special.i1e, np.concatenate([SMALL, LARGE, [1e4, 1e6]]), 5e-15, 0),
    "modified_bessel_k0": (special.k0, POSITIVE, 1e-13, 0),
    "modified_bessel_k1": (special.k1, POSITIVE, 1e-13, 0),
    "scaled_modified_bessel_k0": (special.k0e, POSITIVE, 2e-14, 0),
    "scaled_modified_bessel_k1": (special.k1e, POSITIVE, 2e-14, 0),
    "spherical_bessel_j0": (lambda x: special.spherical_jn(0, np.abs(x)), np.concatenate([SMALL, LARGE]),
                            1e-14, 1e-16),
    "airy_ai": (lambda x: special.airy(x)[0], np.linspace(-20, 20, 200), 1e-11, 1e-13),
    "erfcx": (special.erfcx, np.concatenate([SMALL[SMALL > -20], POSITIVE]), 3e-14, 0),
    "ndtri": (special.ndtri, UNIT, 1e-13, 1e-15),
    "ndtr": (special.ndtr, np.linspace(-30, 10, 200), 1e-12, 0),
    "log_ndtr": (special.log_ndtr, np.linspace(-200, 10, 300), 1e-13, 0),
    "entr": (special.entr, np.concatenate([[-1.0, 0.0], POSITIVE]), 1e-14, 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_scipy(name):
    expected, points, relative, absolute = FUNCTIONS[name]
    got = array(getattr(fl.special, name)(fl.from_numpy(points)))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, expected(points), rtol=relative, atol=absolute)
    single = array(getattr(fl.special, name)(fl.from_numpy(points.astype(np.float32))))
    with np.errstate(all="ignore"):
        wide = expected(points.astype(np.float32).astype(np.float64))
        np.testing.assert_allclose(single, wide.astype(np.float32), rtol=3e-6, atol=1e-7)


@pytest.mark.parametrize("name, expected", [("gammainc", special.gammainc), ("gammaincc", special.gammaincc)])
def test_incomplete_gamma(name, expected):
    a, x = np.meshgrid(np.logspace(-2, 2.5, 40), np.logspace(-3, 2.7, 40))
    got = array(getattr(fl.special, name)(fl.from_numpy(a), fl.from_numpy(x)))
    np.testing.assert_allclose(got, expected(a, x), rtol=1e-11, atol=1e-300)
    edges = fl.tensor([0.0, 2.0, 2.0, -1.0]), fl.tensor([1.0, 0.0, float("inf"), 1.0])
    lower = [1, 0, 1, np.nan]
    np.testing.assert_array_equal(array(getattr(fl.special, name)(*edges)), lower if name == "gammainc"
                                  else 1 - np.array(lower))


def test_zeta():
    s, q = np.meshgrid(np.linspace(1.05, 40, 60), np.logspace(-1, 3, 60))
    got = array(fl.special.zeta(fl.from_numpy(s), fl.from_numpy(q)))
    np.testing.assert_allclose(got, special.zeta(s, q), rtol=1e-13)
    ends = fl.special.zeta(fl.tensor([1.0, 0.5, 2.0, 2.5]), fl.tensor([2.0, 2.0, -3.0, -0.5]))
    np.testing.assert_array_equal(array(ends), [np.inf, np.nan, np.inf, np.nan])


@pytest.mark.parametrize("n", range(6))
def test_polygamma(n):
    x = np.linspace(0.2, 30, 60)
    np.testing.assert_allclose(array(fl.special.polygamma(n, fl.from_numpy(x))), special.polygamma(n, x),
                               rtol=1e-11)


def test_high_degrees():
    x, n = np.linspace(-0.99, 0.99, 41), np.array([[5.0], [20.0], [100.0]])
    for name, expected in (("chebyshev_polynomial_t", special.eval_chebyt),
                           ("chebyshev_polynomial_u", special.eval_chebyu),
                           ("legendre_polynomial_p", special.eval_legendre)):
        got = array(getattr(fl.special, name)(fl.from_numpy(x), fl.from_numpy(n)))
        np.testing.assert_allclose(got, expected(n, x), rtol=1e-10, atol=1e-11)
    assert fl.special.hermite_polynomial_h(fl.tensor(2.0), -1).item() == 0
    assert fl.special.laguerre_polynomial_l(fl.tensor(2.0),
                                            2.9).item() == fl.special.laguerre_polynomial_l(fl.tensor(2.0),
                                                                                            2).item()


@pytest.mark.parametrize("name, arguments", [
    ("zeta", (3.0,)), ("gammainc", (2.5,)), ("gammaincc", (2.5,)), ("polygamma", (2,)),
])
def test_gradient_by_the_second_argument(name, arguments):
    x = fl.tensor([0.7, 1.5, 4.0], dtype=fl.float64, requires_grad=True)
    first = arguments[0] if name == "polygamma" else fl.tensor(arguments[0], dtype=fl.float64)
    function = lambda y: getattr(fl.special, name)(first, y)
    function(x).sum().backward()
    step, base = 1e-6, x.detach()
    expected = (function(base + step) - function(base - step)) / (2 * step)
    np.testing.assert_allclose(array(x.grad), array(expected), rtol=1e-6)
