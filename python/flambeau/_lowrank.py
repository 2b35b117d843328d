"""The largest singular values of large matrices, by random projections (Halko, Martinsson, Tropp, 2009)."""
from . import _C
from .overrides import public_in

__all__ = ["get_approximate_basis"]
_public = public_in(__all__)


def get_approximate_basis(A, q, niter=2, M=None):
    """A matrix (..., m, q) of orthonormal columns that nearly span the range of A - M, of shape (..., m, n).
    """
    if M is not None:
        A = A - M
    basis = A @ _C.randn((A.size(-1), q), dtype=A.dtype, device=A.device)
    for _ in range(niter):
        basis = A @ _C.linalg_qr(A.mH @ _C.linalg_qr(basis)[0])[0]
    return _C.linalg_qr(basis)[0]


def _decomposed(A, q, niter):
    if A.size(-2) < A.size(-1):  # fewer columns than rows: the smaller products
        u, s, v = _decomposed(A.mH, q, niter)
        return v, s, u
    basis = get_approximate_basis(A, q, niter)
    u, s, vh = _C.linalg_svd(basis.mH @ A, full_matrices=False)
    return basis @ u, s, vh.mH


@_public
def svd_lowrank(A, q=6, niter=2, M=None):
    """(U, S, V) with U diag(S) V^H near A - M, of rank q: slightly more than the rank that is wanted.

    niter: iterations, each of which makes the result nearer. M is broadcast to A.
    """
    return _decomposed(A if M is None else A - M, q, niter)


@_public
def pca_lowrank(A, q=None, center=True, niter=2):
    """(U, S, V) of principal components: the columns of V are the first q directions of the rows' variance.

    center: the mean of the rows is subtracted.
    """
    rows, columns = A.shape[-2:]
    if q is None:
        q = min(6, rows, columns)
    if not 0 <= q <= min(rows, columns):
        raise ValueError(f"pca_lowrank(): expected q from 0 to {min(rows, columns)} for matrices of {rows} "
                         f"rows and {columns} columns, got {q}")
    if niter < 0:
        raise ValueError(f"pca_lowrank(): expected niter of at least 0, got {niter}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
