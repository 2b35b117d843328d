"""Linear algebra: what its definition leaves open, its errors, and gradients against finite differences."""
import numpy as np
import pytest

import flambeau as fl
from conversion import array

REAL, COMPLEX = [fl.float32, fl.float64], [fl.complex64, fl.complex128]


def random(*sizes, dtype=fl.float64, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(sizes)
    if dtype in COMPLEX:
        values = values + 1j * generator.standard_normal(sizes)
    return fl.from_numpy(values).to(dtype)


def adjoint(x):
    return fl.adjoint(x)


def hermitian(x):
    return x + adjoint(x)


def definite(x):
    return x @ adjoint(x) + fl.eye(x.shape[-1], dtype=x.dtype)


def close(a, b):
    a, b = (x if isinstance(x, np.ndarray) else array(x) for x in (a, b))
    tolerance = 1e-4 if a.dtype in (np.float32, np.complex64) else 1e-10
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
@pytest.mark.parametrize("triangle", ["L", "U"])
def test_eigh_solves_the_eigenvalue_problem(dtype, triangle):
    a = random(2, 4, 4, dtype=dtype)
    values, vectors = fl.linalg.eigh(a, triangle)
    read = np.tril(array(a)) if triangle == "L" else np.triu(array(a))
    whole = read + np.conj(np.swapaxes(read, -1, -2))
    index = np.arange(4)
    whole[:, index, index] = np.real(array(a)[:, index, index])
    close(whole @ array(vectors), array(vectors) * array(values)[:, None, :])
    close(adjoint(vectors) @ vectors, np.broadcast_to(np.eye(4), (2, 4, 4)))
    assert (np.diff(array(values)) >= 0).all()


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_eig_solves_the_eigenvalue_problem(dtype):
    a = random(3, 5, 5, dtype=dtype)
    values, vectors = fl.linalg.eig(a)
    close(array(a) @ array(vectors), array(vectors) * array(values)[:, None, :])
    close(np.linalg.norm(array(vectors), axis=-2), np.ones((3, 5)))
    close(np.sort_complex(array(fl.linalg.eigvals(a))[0]), np.sort_complex(array(values)[0]))


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
@pytest.mark.parametrize("sizes", [(3, 3), (2, 5, 3), (3, 5), (0, 3), (2, 3, 0)])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("driver", [None, "gesvd"])
def test_svd_gives_back_the_matrix(dtype, sizes, full, driver):
    a = random(*sizes, dtype=dtype)
    u, s, vh = fl.linalg.svd(a, full, driver=driver)
    k = min(sizes[-2:])
    close(array(u)[..., :k] * array(s)[..., None, :] @ array(vh)[..., :k, :], a)
    close(array(adjoint(u)) @ array(u),
          np.broadcast_to(np.eye(u.shape[-1]), u.shape[:-2] + (u.shape[-1],) * 2))
    assert (np.diff(array(s)) <= 0).all()
    close(fl.linalg.svdvals(a), s)
    left, values, right = fl.svd(a, some=not full)
    close(adjoint(right), vh) if driver is None else None


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_ldl_solves_with_pivots(dtype):
    a = hermitian(random(2, 5, 5, dtype=dtype))
    b = random(2, 5, 3, dtype=dtype, seed=1)
    x = fl.linalg.ldl_solve(*fl.linalg.ldl_factor(a, hermitian=True), b, hermitian=True)
    close(array(a) @ array(x), b)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(driver):
    a, b = random(2, 6, 3), random(2, 6, 2, seed=1)
    got = fl.linalg.lstsq(a, b, driver=driver)
    close(got.solution, np.linalg.pinv(array(a)) @ array(b))
    assert got.residuals.shape == ((2, 2) if driver != "gelsy" else (0,))
    assert got.rank.shape == ((2,) if driver != "gels" else (0,))
    assert got.singular_values.shape == ((2, 3) if driver in ("gelsd", "gelss") else (0,))


def test_layouts_of_operands():
    a, b = random(4, 4), random(4, 6)
    expected = np.linalg.solve(array(a), array(b)[:, ::2])
    close(fl.linalg.solve(a, b[:, ::2]), expected)
    close(fl.linalg.solve(a.T.contiguous().T, b[:, ::2]), expected)
    close(fl.linalg.solve(a.expand(3, 4, 4), b[:, ::2].expand(3, 4, 3))[2], expected)


@pytest.mark.parametrize("call, text", [
    (lambda: fl.linalg.inv(fl.zeros(3, 2, 2)), r"linalg.inv: \(Batch element 0\): .*singular"),
    (lambda: fl.linalg.solve(fl.stack([fl.eye(2), fl.zeros(2, 2)]), fl.ones(2, 2, 1)),
     r"\(Batch element 1\): .*singular"),
    (lambda: fl.linalg.cholesky(-fl.eye(2)), "linalg.cholesky: .*order 1 is not positive-definite"),
    (lambda: fl.linalg.eigh(fl.full((2, 2), float("nan"))), "non-finite"),
    (lambda: fl.linalg.svd(fl.full((2, 2), float("inf"))), "non-finite"),
])
def test_failures_are_linalg_errors(call, text):
    with pytest.raises(fl.linalg.LinAlgError, match=text) as error:
        call()
    assert isinstance(error.value, RuntimeError)


def test_ex_forms_tell_instead_of_raising():
    assert fl.linalg.inv_ex(fl.zeros(2, 2)).info.item() == 1
    assert fl.linalg.cholesky_ex(-fl.eye(2)).info.item() == 1
    assert fl.linalg.solve_ex(fl.zeros(2, 2), fl.ones(2, 1)).info.item() == 1


def test_compiled_programs_call_the_same_routines():
    a, b = random(4, 4), random(4, 2)

    def program(a, b):
        q, r = fl.linalg.qr(a)
        return (q @ fl.linalg.solve(a, b)).sum() + fl.linalg.svdvals(r).sum() * fl.fft.rfft(b,
                                                                                            dim=0).abs().sum()

    close(fl.compile(program)(a, b), program(a, b))
    with pytest.raises(RuntimeError, match="singular"):
        fl.compile(lambda x: fl.linalg.inv(x) * 2)(fl.zeros(3, 3))


# Gradients

def weights(y):
    generator = np.random.default_rng(7)
    values = generator.standard_normal(y.shape)
    return np.asarray(values + 1j * generator.standard_normal(y.shape) if y.is_complex() else values)


def loss(function, x):
    """A real number that depends on every output."""
    outputs = function(x)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    total = 0
    for y in outputs:
        if not (y.is_floating_point() or y.is_complex()):
            continue
        w = fl.from_numpy(weights(y)).to(y.dtype)
        part = (w * y).sum()
        total = total + (part.real if y.is_complex() else part)
    return total


def check_gradient(function, x):
    """PyTorch's convention: the gradient's parts are the slopes by the real and the imaginary part."""
    leaf = x.detach().clone().requires_grad_()
    loss(function, leaf).backward()
    got, base, step = array(leaf.grad), array(x).copy(), 1e-6
    for index in np.ndindex(base.shape):
        expected = 0
        for unit in (1, 1j) if x.is_complex() else (1,):
            values = []
            for sign in (1, -1):
                moved = base.copy()
                moved[index] += sign * step * unit
                values.append(loss(function, fl.from_numpy(moved)).item())
            expected = expected + unit * (values[0] - values[1]) / (2 * step)
        np.testing.assert_allclose(got[index], expected, rtol=1e-4, atol=1e-5)


def phase_free(vectors):
    """What does not depend on the phases of columns."""
    return (vectors.abs() ** 2) if vectors.is_complex() else vectors * vectors


GRADIENTS = {
    "cholesky": lambda x: fl.linalg.cholesky(definite(x)),
    "cholesky upper": lambda x: fl.linalg.cholesky(definite(x), upper=True),
    "eigh": lambda x: (lambda r: (r[0], phase_free(r[1])))(fl.linalg.eigh(hermitian(x))),
    "eigvalsh": lambda x: fl.linalg.eigvalsh(hermitian(x)),
    "eig": lambda x: (lambda r: ((r[0] ** 2).sum(), (r[1].abs() ** 2).sum(-1)))(fl.linalg.eig(x)),
    "svd": lambda x: (lambda r: (phase_free(r[0]), r[1], phase_free(r[2])))(fl.linalg.svd(x, False)),
    "svdvals": fl.linalg.svdvals,
    "qr": fl.linalg.qr,
    "lu": lambda x: fl.linalg.lu(x)[1:],
    "solve": lambda x: fl.linalg.solve(x, x[..., :2]),
    "solve right": lambda x: fl.linalg.solve(x, x[:2], left=False),
    "inv": fl.linalg.inv,
    "det": fl.linalg.det,
    "slogdet": fl.linalg.slogdet,
    "logdet": lambda x: fl.logdet(definite(x)),
    "pinv": lambda x: fl.linalg.pinv(x[:, :2]),
    "pinv hermitian": lambda x: fl.linalg.pinv(hermitian(x), hermitian=True),
    "lstsq": lambda x: fl.linalg.lstsq(x[:, :2], x[:, 2:]).solution,
    "solve_triangular": lambda x: fl.linalg.solve_triangular(x, x[:, :2], upper=True),
    "lu_solve": lambda x: fl.linalg.lu_solve(*fl.linalg.lu_factor(x), x[:, :2], adjoint=True),
    "cholesky_solve": lambda x: fl.cholesky_solve(x[:, :2], fl.linalg.cholesky(definite(x))),
    "matrix_exp": fl.linalg.matrix_exp,
    "matrix_norm 2": lambda x: fl.linalg.matrix_norm(x, 2),
    "matrix_norm nuc": lambda x: fl.linalg.matrix_norm(x, "nuc"),
    "cond": lambda x: fl.linalg.cond(x, "fro"),
    "matrix_power": lambda x: fl.linalg.matrix_power(x, -2),
    "householder_product": lambda x: fl.linalg.householder_product(x, x[0]),
    "ormqr": lambda x: fl.ormqr(x, x[0], x, transpose=True),
    "polar": fl.linalg.polar,
    "matrix_sqrth": lambda x: fl.linalg.matrix_sqrth(definite(x)),
    "multi_dot": lambda x: fl.linalg.multi_dot([x, x, x]),
    "vecdot": lambda x: fl.linalg.vecdot(x, x * x),
    "cross": lambda x: fl.linalg.cross(x, x * x),
    "fft": fl.fft.fft,
    "ifft2": fl.fft.ifft2,
    "hfft": lambda x: fl.fft.hfft(x, 5),
    "irfft": lambda x: fl.fft.irfft(x, 4),
    "irfft odd": lambda x: fl.fft.irfftn(x, (3, 5)),
    "istft": lambda x: fl.istft(x.to(fl.complex128), 4, 2),
}
REAL_ONLY = {
    "rfft": fl.fft.rfft,
    "rfftn": lambda x: fl.fft.rfftn(x, (4, 5)),
    "ihfft": fl.fft.ihfft,
    "stft": lambda x: fl.stft(x, 2, 1, return_complex=True),
    "det singular": lambda x: fl.linalg.det(x[:, :1] @ x[:1, :]),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", [fl.float64, fl.complex128])
def test_gradient(name, dtype):
    if name == "eig" and dtype == fl.float64:
        pytest.skip("pairs of eigenvalues change places")
    check_gradient(GRADIENTS[name], random(3, 3, dtype=dtype, seed=3))


@pytest.mark.parametrize("name", REAL_ONLY)
def test_gradient_of_real(name):
    check_gradient(REAL_ONLY[name], random(3, 3, seed=3))
