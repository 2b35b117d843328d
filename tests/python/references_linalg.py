"""What the operators of linear algebra, Fourier transforms and special functions compute, in NumPy and SciPy."""
import math

import numpy as np
import scipy.fft
import scipy.linalg as sl
from scipy import special

from references import cast, reference, wide


def batched(function, *ranks):
    """A function of single matrices and vectors (of these ranks) over the leading dimensions, which broadcast."""
    def run(*arrays):
        batch = np.broadcast_shapes(*(a.shape[:a.ndim - r] for a, r in zip(arrays, ranks)))
        arrays = [np.broadcast_to(a, batch + a.shape[a.ndim - r:]) for a, r in zip(arrays, ranks)]
        results = [function(*(a[i] for a in arrays)) for i in np.ndindex(batch)]
        if not results:
            sample = function(*(np.zeros(a.shape[len(batch):], a.dtype) for a in arrays))
            return np.zeros(batch + np.shape(sample), np.asarray(sample).dtype) if not isinstance(sample, tuple) else sample
        if isinstance(results[0], tuple):
            return tuple(np.stack(r).reshape(batch + np.shape(r[0])) for r in zip(*results))
        return np.stack(results).reshape(batch + np.shape(results[0]))
    return run


def H(x):
    return np.conj(np.swapaxes(x, -1, -2))


def zero_info(x):
    return np.zeros(x.shape[:-2], np.int32)


# Factors

def cholesky(x, upper=False):
    x = np.tril(x) + H(np.tril(x, -1)) if not upper else np.triu(x) + H(np.triu(x, 1))
    low = np.linalg.cholesky(x) if x.size else x
    return H(low) if upper else low


reference("linalg_cholesky", "cholesky")(cholesky)
reference("linalg_cholesky_ex", "_linalg_cholesky")(lambda x, upper, *_: (cholesky(x, upper), zero_info(x)))
reference("cholesky_solve")(lambda b, x, upper: np.linalg.solve(H(np.triu(x)) @ np.triu(x) if upper else np.tril(x) @ H(np.tril(x)), b))
reference("cholesky_inverse")(lambda x, upper: np.linalg.inv(H(np.triu(x)) @ np.triu(x) if upper else np.tril(x) @ H(np.tril(x))))


def lu_factors(x):
    def one(m):
        if m.size == 0:
            return m, np.zeros(min(m.shape), np.int32)
        factors, pivots = sl.lapack.get_lapack_funcs("getrf", (m,))(m)[:2]
        return factors, pivots.astype(np.int32) + 1
    return batched(one, 2)(x)


def permutation(pivots, rows, inverse=False):
    def one(p):
        order = np.arange(rows)
        for k, other in enumerate(p):
            order[[k, other - 1]] = order[[other - 1, k]]
        return np.argsort(order) if inverse else order
    return batched(one, 1)(pivots)


def unpack(lu, pivots, *_):
    m, n = lu.shape[-2:]
    k = min(m, n)
    p = np.eye(m)[permutation(pivots, m, True)]
    return p, np.tril(lu[..., :k], -1) + np.eye(m, k), np.triu(lu[..., :k, :])


reference("_linalg_lu")(lambda x, _: (*lu_factors(x), zero_info(x)))
reference("linalg_lu_factor_ex")(lambda x, *_: (*lu_factors(x), zero_info(x)))
reference("linalg_lu_factor")(lambda x, _: lu_factors(x))
reference("linalg_lu")(lambda x, _: unpack(*lu_factors(x)))
reference("lu_unpack")(unpack)
reference("_lu_permutation")(permutation)


def product(lu, pivots):
    p, low, up = unpack(lu, pivots)
    return p @ low @ up


@reference("linalg_lu_solve")
def lu_solve(lu, pivots, b, left, adjoint):
    a = product(lu, pivots)
    a = H(a) if adjoint else a
    return np.linalg.solve(a, b) if left else H(np.linalg.solve(H(a), H(b)))


reference("lu_solve")(lambda b, lu, pivots: np.linalg.solve(product(lu, pivots), b))


def qr(x, mode="reduced"):
    return np.linalg.qr(x, mode)


reference("linalg_qr")(lambda x, mode: tuple(qr(x, mode)))
reference("qr")(lambda x, some: tuple(qr(x, "reduced" if some else "complete")))


@reference("geqrf")
def geqrf(x):
    def one(m):
        if m.size == 0:
            return m, np.zeros(min(m.shape), m.dtype)
        return sl.lapack.get_lapack_funcs("geqrf", (m,))(m)[:2]
    return batched(one, 2)(x)


def reflectors(a, tau):
    """The product of 1 - tau v v^H."""
    def one(m, t):
        q = np.eye(m.shape[0], dtype=m.dtype)
        for k, factor in enumerate(t):
            v = np.where(np.arange(m.shape[0]) > k, m[:, k], 0)
            v[k] = 1
            q = q @ (np.eye(m.shape[0]) - factor * np.outer(v, v.conj()))
        return q
    return batched(one, 2, 1)(a, tau)


reference("linalg_householder_product", "orgqr")(lambda a, tau: reflectors(a, tau)[..., :a.shape[-1]])


@reference("ormqr")
def ormqr(a, tau, x, left, transpose):
    q = reflectors(a, tau)
    q = H(q) if transpose else q
    return q @ x if left else x @ q


# Systems

def triangle(a, upper, unit):
    a = np.triu(a) if upper else np.tril(a)
    return np.where(np.eye(a.shape[-1], dtype=bool), 1, a) if unit else a


def solve_triangular(a, b, upper, left=True, unit=False):
    t = triangle(a, upper, unit)
    return np.linalg.solve(t, b) if left else H(np.linalg.solve(H(t), H(b)))


reference("_solve_triangular", "linalg_solve_triangular")(solve_triangular)


@reference("triangular_solve")
def triangular_solve(b, a, upper, transpose, unit):
    t = triangle(a, upper, unit)
    t = np.swapaxes(t, -1, -2) if transpose else t
    return np.linalg.solve(t, b), np.broadcast_to(a, np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + a.shape[-2:])


def solve(a, b, left=True, *_):
    vector = b.ndim == 1 or b.shape == a.shape[:-1]
    b = b[..., None] if vector else b
    x = np.linalg.solve(a, b) if left else H(np.linalg.solve(H(a), H(b)))
    return x[..., 0] if vector else x


reference("linalg_solve")(solve)
reference("linalg_solve_ex")(lambda a, b, *rest: (solve(a, b, *rest), zero_info(a)))
reference("_linalg_solve")(lambda a, b, _: (solve(a, b), *lu_factors(a), zero_info(a)))
reference("linalg_inv", "inverse")(np.linalg.inv)
reference("linalg_inv_ex", "_linalg_inv")(lambda x, _: (np.linalg.inv(x), zero_info(x)))
reference("linalg_tensorinv")(np.linalg.tensorinv)
reference("linalg_tensorsolve")(np.linalg.tensorsolve)
reference("linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float", "linalg_pinv", "linalg_pinv.rcond_tensor", "pinverse")(
    lambda x, *_: np.linalg.pinv(x) if x.size else np.zeros(x.shape[:-2] + x.shape[:-3:-1], x.dtype))


@reference("linalg_lstsq")
def lstsq(a, b, rcond, driver):
    vector = b.ndim == 1
    b = b[..., None] if vector else b
    x = np.linalg.pinv(a) @ b
    ranks = np.full(a.shape[:-2], min(a.shape[-2:]))
    return x[..., 0] if vector else x, np.zeros(0), ranks, np.zeros(0)


@reference("_linalg_lstsq")
def lstsq_of_driver(a, b, rcond, driver):
    x = np.linalg.pinv(a) @ b
    left = (np.abs(a @ x - b) ** 2).sum(-2)
    rank = np.full(a.shape[:-2], 0 if driver == "gels" else min(a.shape[-2:]))
    values = np.linalg.svd(a, compute_uv=False)
    return x, left, rank, values if driver in ("gelsd", "gelss") else np.zeros(a.shape[:-2] + (0,))


reference("_lstsq_solution")(lambda a, b, x: x)

# Determinants


def slogdet(x):
    return tuple(np.linalg.slogdet(x))


reference("linalg_det", "det")(np.linalg.det)
reference("_linalg_det")(lambda x: (np.linalg.det(x), *lu_factors(x)))
reference("linalg_slogdet", "slogdet")(slogdet)
reference("_linalg_slogdet")(lambda x: (*slogdet(x), *lu_factors(x)))
reference("logdet")(lambda x: np.log(np.linalg.det(x)))

# Spectra

reference("linalg_eigvalsh")(lambda x, triangle: np.linalg.eigvalsh(x, triangle))
reference("linalg_svdvals")(lambda x, _: np.linalg.svd(x, compute_uv=False))
reference("linalg_matrix_exp", "matrix_exp")(lambda x: sl.expm(x) if x.size else x)
reference("linalg_matrix_rank.atol_rtol_tensor", "linalg_matrix_rank.atol_rtol_float")(
    lambda x, *_: np.linalg.matrix_rank(x) if x.size else np.zeros(x.shape[:-2]))
reference("linalg_matrix_rank", "linalg_matrix_rank.tol_tensor")(
    lambda x, tol, _: (np.linalg.svd(x, compute_uv=False) > np.expand_dims(np.asarray(tol), -1)).sum(-1))
reference("linalg_matrix_sqrth")(batched(sl.sqrtm, 2))
reference("linalg_polar")(batched(lambda m: tuple(sl.polar(m)), 2))

# Norms


def matrix_norm(x, order="fro", dim=(-2, -1), keepdim=False, dtype=None):
    return np.linalg.norm(cast(x, dtype), order, tuple(dim), keepdim)


reference("linalg_matrix_norm", "linalg_matrix_norm.str_ord")(matrix_norm)


@reference("linalg_norm", "linalg_norm.ord_str")
def norm(x, order, dim, keepdim, dtype):
    x = cast(x, dtype)
    if order is None and dim is None:
        return np.reshape(np.linalg.norm(x.ravel()), (1,) * x.ndim if keepdim else ())
    dim = dim if dim is None or isinstance(dim, int) else tuple(dim)
    return np.linalg.norm(x, order, dim[0] if isinstance(dim, tuple) and len(dim) == 1 else dim, keepdim)


reference("linalg_cond", "linalg_cond.p_str")(np.linalg.cond)

# Products

reference("linalg_matmul")(lambda a, b: np.matmul(wide(a), wide(b)))
reference("linalg_multi_dot", "chain_matmul")(lambda xs: np.linalg.multi_dot(xs))
reference("linalg_matrix_power", "matrix_power")(np.linalg.matrix_power)


def cross(a, b, dim):
    a, b = np.broadcast_arrays(a, b)
    return np.cross(a, b, axis=dim if dim is not None else a.shape.index(3))


reference("linalg_cross")(cross)
reference("linalg_vecdot")(lambda a, b, dim: (np.conj(a) * b).sum(dim))
reference("linalg_diagonal")(lambda x, offset, dim1, dim2: np.diagonal(x, offset, dim1, dim2))
reference("linalg_vander")(lambda x, n: x[..., None] ** np.arange(n or x.shape[-1]))


@reference("_ldl_solve", "linalg_ldl_solve")
def ldl_solve(ld, pivots, b, hermitian):
    return np.linalg.solve(ldl_product(ld, pivots), b)


def ldl_product(ld, pivots):
    """The matrix of LAPACK's factors where no pivoting took place, as of positive definite ones."""
    assert (pivots > 0).all()
    diagonal = np.einsum("...ii->...i", ld)[..., None, :]
    low = np.tril(ld, -1) + np.eye(ld.shape[-1])
    for k in range(ld.shape[-1]):
        assert (pivots[..., k] == k + 1).all()
    return (low * diagonal) @ np.swapaxes(low, -1, -2)


# Fourier transforms

def factor(x, dims, mode):
    count = math.prod(x.shape[d] for d in dims)
    return (1, count ** -0.5, 1 / max(count, 1))[mode]


def lasting(function):
    """A transform of NumPy's with PyTorch's argument order."""
    return lambda x, n=None, dim=-1, norm=None: function(x, n, dim, norm or "backward")


for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    reference(f"fft_{name}")(lasting(getattr(np.fft, name)))


def many(function, default):
    def run(x, s=None, dim=default, norm=None):
        dim = dim if dim is None else tuple(dim)
        s = None if s is None else tuple(s)
        return function(x, s, dim, norm or "backward")
    return run


for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    function = getattr(scipy.fft, f"{name}n")
    reference(f"fft_{name}2")(many(function, (-2, -1)))
    reference(f"fft_{name}n")(many(function, None))


@reference("_fft_c2c")
def fft_complex(x, dims, mode, forward):
    if x.size == 0:
        return x
    count = math.prod(x.shape[d] for d in dims)
    transformed = np.fft.fftn(x, axes=dims) if forward else np.fft.ifftn(x, axes=dims) * count
    return transformed * (1, count ** -0.5, 1 / count)[mode]


@reference("_fft_r2c")
def fft_from_real(x, dims, mode):
    return np.fft.rfftn(x, axes=dims) * factor(x, dims, mode)


@reference("_fft_c2r")
def fft_to_real(x, dims, mode, size):
    out = np.fft.irfftn(x, [x.shape[d] for d in dims[:-1]] + [size], axes=dims)
    count = math.prod(out.shape[d] for d in dims)
    return out * count * (1, count ** -0.5, 1 / count)[mode]


reference("fft_fftfreq")(lambda n, d, *_: np.fft.fftfreq(n, d))
reference("fft_rfftfreq")(lambda n, d, *_: np.fft.rfftfreq(n, d))
reference("fft_fftshift")(lambda x, dim: np.fft.fftshift(x, dim))
reference("fft_ifftshift")(lambda x, dim: np.fft.ifftshift(x, dim))


@reference("stft.center")
def stft(x, n_fft, hop, length, window, center, pad_mode, normalized, onesided, *_):
    hop, length = hop or n_fft // 4, length or n_fft
    window = np.ones(length) if window is None else window
    left = (n_fft - length) // 2
    window = np.pad(window, (left, n_fft - length - left))
    single, x = x.ndim == 1, np.atleast_2d(x)
    if center:
        x = np.pad(x, ((0, 0), (n_fft // 2, n_fft // 2)), pad_mode)
    frames = np.stack([x[:, k:k + n_fft] * window for k in range(0, x.shape[1] - n_fft + 1, hop)], 1)
    half = onesided if onesided is not None else True
    out = (np.fft.rfft if half else np.fft.fft)(frames, norm="ortho" if normalized else "backward")
    out = np.swapaxes(out, 1, 2)
    return out[0] if single else out


@reference("istft")
def istft(x, n_fft, hop, length, window, center, normalized, onesided, size, _):
    hop = hop or n_fft // 4
    single, x = x.ndim == 2, x if x.ndim == 3 else x[None]
    frames = np.fft.irfft(np.swapaxes(x, 1, 2), n_fft, norm="ortho" if normalized else "backward")
    total = n_fft + hop * (frames.shape[1] - 1)
    signal, weight = np.zeros((len(x), total)), np.zeros(total)
    for k in range(frames.shape[1]):
        signal[:, k * hop:k * hop + n_fft] += frames[:, k]
        weight[k * hop:k * hop + n_fft] += 1
    start = n_fft // 2 if center else 0
    end = start + size if size else (total - n_fft // 2 if center else total)
    out = signal[:, start:end] / weight[start:end]
    out = np.pad(out, ((0, 0), (0, max(0, end - total))))
    return out[0] if single else out


# Special functions

SPECIAL = {
    "i0": special.i0, "special_i0e": special.i0e, "special_i1": special.i1, "special_i1e": special.i1e, "special_bessel_j0": special.j0,
    "special_bessel_j1": special.j1, "special_bessel_y0": special.y0, "special_bessel_y1": special.y1,
    "special_modified_bessel_i0": special.i0, "special_modified_bessel_i1": special.i1, "special_modified_bessel_k0": special.k0,
    "special_modified_bessel_k1": special.k1, "special_scaled_modified_bessel_k0": special.k0e,
    "special_scaled_modified_bessel_k1": special.k1e, "special_spherical_bessel_j0": lambda x: np.sinc(x / np.pi),
    "special_airy_ai": lambda x: special.airy(x)[0], "special_erfcx": special.erfcx, "special_ndtri": special.ndtri,
    "special_ndtr": special.ndtr, "special_log_ndtr": special.log_ndtr, "special_entr": special.entr, "special_zeta": special.zeta,
    "igamma": special.gammainc, "igammac": special.gammaincc,
    "mvlgamma": lambda x, p: special.multigammaln(x, p) if np.size(x) else x,
}
for name, function in SPECIAL.items():
    reference(name)(function)


def polynomial(function):
    return lambda x, n: function(np.trunc(n), x)


for name, function in {
    "chebyshev_polynomial_t": special.eval_chebyt, "chebyshev_polynomial_u": special.eval_chebyu,
    "shifted_chebyshev_polynomial_t": special.eval_sh_chebyt, "shifted_chebyshev_polynomial_u": special.eval_sh_chebyu,
    "laguerre_polynomial_l": special.eval_laguerre, "legendre_polynomial_p": special.eval_legendre,
}.items():
    reference(f"special_{name}")(polynomial(function))


def whole_degrees(function):
    """Of SciPy's functions that take degrees of an integer type."""
    @np.vectorize
    def one(x, n):
        return function(int(n), float(x))
    return lambda x, n: one(x, n) if np.broadcast(x, n).size else np.zeros(np.broadcast(x, n).shape)


for name, function in {
    "hermite_polynomial_h": special.eval_hermite, "hermite_polynomial_he": special.eval_hermitenorm,
    # Of the third and fourth kind: cos((n + 1/2) t) / cos(t / 2) and sin((n + 1/2) t) / sin(t / 2), as differences of the second.
    "chebyshev_polynomial_v": lambda n, x: special.eval_chebyu(n, x) - (special.eval_chebyu(n - 1, x) if n else 0),
    "chebyshev_polynomial_w": lambda n, x: special.eval_chebyu(n, x) + (special.eval_chebyu(n - 1, x) if n else 0),
    "shifted_chebyshev_polynomial_v": lambda n, x: special.eval_sh_chebyu(n, x) - (special.eval_sh_chebyu(n - 1, x) if n else 0),
    "shifted_chebyshev_polynomial_w": lambda n, x: special.eval_sh_chebyu(n, x) + (special.eval_sh_chebyu(n - 1, x) if n else 0),
}.items():
    reference(f"special_{name}")(whole_degrees(function))
