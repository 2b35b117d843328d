"""Window functions, with the signatures of torch.signal.windows.

`sym=True` gives a symmetric window of M points (for filters), `sym=False` one period of M points (for
spectra): the symmetric window of M + 1 points without its last.
"""
import math

from .. import _C

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming",
           "hamming",
           "hann", "kaiser", "nuttall"]


def _positions(name, M, sym, dtype, device):
    """0, 1, ... M - 1, and the number of points of the symmetric window."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    dtype = dtype or _C.get_default_dtype()
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return _C.arange(M, dtype=_C.float64, device=device), M if sym else M + 1, dtype


def _check_layout(name, layout):
    if layout is not None and str(layout) != "torch.strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")


def _window(name, M, sym, dtype, layout, device, requires_grad, formula):
    """formula(n, points) on float64 positions, rounded once."""
    _check_layout(name, layout)
    n, points, dtype = _positions(name, M, sym, dtype, device)
    out = formula(n, points) if M > 1 else _C.ones(M, dtype=_C.float64, device=device)
    out = out.to(dtype)
    return out.requires_grad_(True) if requires_grad else out


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None, device=None,
                requires_grad=False):
    """exp(-|n - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def formula(n, points):
        return _C.exp(-_C.abs(n - ((points - 1) / 2 if center is None else center)) / tau)

    return _window("exponential", M, sym, dtype, layout, device, requires_grad, formula)


def cosine(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """sin(pi (n + 0.5) / M)."""
    return _window("cosine", M, sym, dtype, layout, device, requires_grad,
                   lambda n, points: _C.sin((n + 0.5) * (math.pi / points)))


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """exp(-(n - centre)^2 / (2 std^2))."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window("gaussian", M, sym, dtype, layout, device, requires_grad,
                   lambda n, points: _C.exp(-0.5 * _C.square((n - (points - 1) / 2) / std)))


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """I0(beta sqrt(1 - x^2)) / I0(beta), x from -1 to 1."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def formula(n, points):
        x = n * (2 / (points - 1)) - 1
        inside = _C.clamp(1 - x * x, min=0)
        return _C.i0(beta * _C.sqrt(inside)) / _C.i0(_C.tensor(float(beta), dtype=n.dtype, device=n.device))

    return _window("kaiser", M, sym, dtype, layout, device, requires_grad, formula)


def bartlett(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """A triangle from 0 to 1 and back."""
    return _window("bartlett", M, sym, dtype, layout, device, requires_grad,
                   lambda n, points: 1 - _C.abs(n * (2 / (points - 1)) - 1))


def general_cosine(M, *, a, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Sum of (-1)^k a[k] cos(2 pi k n / (points - 1))."""
    from collections.abc import Iterable

    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")

    def formula(n, points):
        turn = 2 * math.pi / (points - 1)
        return sum((-1) ** k * w * _C.cos(n * (k * turn)) for k, w in enumerate(weights))

    return _window("general_cosine", M, sym, dtype, layout, device, requires_grad, formula)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos(2 pi n / (points - 1))."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def hamming(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """general_hamming with alpha = 0.54."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """general_hamming with alpha = 0.5: a squared sine."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device,
                           requires_grad=requires_grad)


def blackman(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """general_cosine with the weights 0.42, 0.5, 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """general_cosine with Nuttall's four weights of least side lobes."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype,
                          layout=layout,
                          device=device, requires_grad=requires_grad)
