"""Elementary functions of complex numbers against NumPy and SciPy in the whole plane, and their gradients."""
import numpy as np
import pytest
from scipy import special

import flambeau as fl
from conversion import array

ANALYTIC = {
    "exp": np.exp, "exp2": lambda z: np.exp(z * np.log(2)), "expm1": special.expm1, "log": np.log,
    "log2": lambda z: np.log(z) / np.log(2),
    "log10": np.log10, "log1p": special.log1p, "sqrt": np.sqrt, "rsqrt": lambda z: 1 / np.sqrt(z),
    "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "reciprocal": lambda z: 1 / z,
    "square": lambda z: z * z,
}


def plane():
    """Points of every quadrant and size, on the axes, and on both sides of the cuts."""
    sizes = np.concatenate([-np.logspace(-5, 1, 13), [-1.0, -0.0, 0.0, 1.0], np.logspace(-5, 1, 13)])
    re, im = np.meshgrid(sizes, sizes)
    points = re.ravel() + 1j * im.ravel()
    points.imag[...] = im.ravel()
    return points


@pytest.mark.parametrize("name", ANALYTIC)
def test_complex_functions(name):
    z = plane()
    with np.errstate(all="ignore"):
        expected = ANALYTIC[name](z)
    keep = np.isfinite(expected)
    got = array(getattr(fl, name)(fl.from_numpy(z)))
    error = np.abs(got - expected)[keep] / np.maximum(np.abs(expected[keep]), 1e-300)
    assert error.max() < 1e-13, (z[keep][error.argmax()], got[keep][error.argmax()],
                                 expected[keep][error.argmax()])
    single = z.astype(np.complex64)
    with np.errstate(all="ignore"):
        expected = ANALYTIC[name](single.astype(np.complex128))
    keep = np.isfinite(expected.astype(np.complex64))
    got = array(getattr(fl, name)(fl.from_numpy(single)))
    error = np.abs(got - expected)[keep] / np.maximum(np.abs(expected[keep]), 1e-30)
    assert error.max() < 1e-6, (z[keep][error.argmax()], got[keep][error.argmax()],
                                expected[keep][error.argmax()])


@pytest.mark.parametrize("name", sorted(ANALYTIC))
def test_complex_gradients(name):
    z = np.array([0.3 + 0.4j, -0.7 + 0.2j, 1.4 - 0.8j, -0.2 - 1.1j])
    leaf = fl.from_numpy(z).requires_grad_()
    cotangent = fl.from_numpy(np.array([1 + 2j, 0.5j, -1.0 + 0j, 2 - 1j]))
    getattr(fl, name)(leaf).backward(cotangent)
    step = 1e-6
    slope = (ANALYTIC[name](z + step) - ANALYTIC[name](z - step)) / (2 * step)
    np.testing.assert_allclose(array(leaf.grad), array(cotangent) * np.conj(slope), rtol=1e-6, atol=1e-8)


def test_complex_powers():
    a, b = np.meshgrid(np.array([0.5 + 1j, -2 + 0.3j, 1j, -1 + 0j, 3 + 0j]),
                       np.array([2 + 0j, 0.5 - 1j, -1.5 + 0j, 1j]))
    np.testing.assert_allclose(array(fl.from_numpy(a) ** fl.from_numpy(b)), a ** b, rtol=1e-12, atol=1e-14)
    zero = fl.zeros(3, dtype=fl.complex64)
    np.testing.assert_array_equal(array(zero ** fl.tensor([0, 2, 1 + 1j])), [1, 0, 0])
    np.testing.assert_allclose(array(2 ** fl.from_numpy(b)), 2 ** b, rtol=1e-13)


def test_polar():
    modulus, angle = fl.tensor([1.0, 2.0]), fl.tensor([np.pi / 2, -np.pi / 3])
    np.testing.assert_allclose(array(fl.polar(modulus, angle)), array(modulus) * np.exp(1j * array(angle)),
                               atol=1e-6)
