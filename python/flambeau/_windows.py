"""Window functions of the torch namespace: float64 formulas, rounded once.

periodic: one period of a window of length + 1, for spectra; else symmetric, for filters.
"""
import math

from . import _C
from .overrides import public_in

__all__ = []
_public = public_in(__all__)


def _window(name, length, periodic, formula, dtype, device, requires_grad):
    """formula(positions, last), positions from 0 to last."""
    dtype = dtype or _C.get_default_dtype()
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    last = length if periodic else length - 1
    if length < 2:
        window = _C.ones(length, dtype=_C.float64, device=device)
    else:
        window = formula(_C.arange(length, dtype=_C.float64, device=device), last)
    window = window.to(dtype)
    return window.requires_grad_() if requires_grad else window


def _cosines(*weights):
    """The sum of weights[k] cos(2 pi k n / last)."""
    return lambda n, last: sum(w * _C.cos(n * (2 * math.pi * k / last)) for k, w in enumerate(weights))


@_public
def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False,
                requires_grad=False):
    """sin^2(pi n / last)."""
    return _window("hann_window", window_length, periodic, _cosines(0.5, -0.5), dtype, device, requires_grad)


@_public
def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None,
                   device=None, pin_memory=False, requires_grad=False):
    """alpha - beta cos(2 pi n / last)."""
    return _window("hamming_window", window_length, periodic, _cosines(alpha, -beta), dtype, device,
                   requires_grad)


@_public
def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False,
                    requires_grad=False):
    """0.42 - 0.5 cos(2 pi n / last) + 0.08 cos(4 pi n / last)."""
    return _window("blackman_window", window_length, periodic, _cosines(0.42, -0.5, 0.08), dtype, device,
                   requires_grad)


@_public
def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False,
                    requires_grad=False):
    """A triangle from 0 to 1 and back."""
    return _window("bartlett_window", window_length, periodic, lambda n, last: 1 - (n * (2 / last) - 1).abs(),
                   dtype, device, requires_grad)


@_public
def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None,
                  pin_memory=False, requires_grad=False):
    """I0(beta sqrt(1 - x^2)) / I0(beta), x from -1 to 1."""
    def formula(n, last):
        inside = (1 - (n * (2 / last) - 1).square()).clamp(min=0)
        return _C.i0(beta * inside.sqrt()) / _C.i0(_C.tensor(float(beta), dtype=n.dtype, device=n.device))

    return _window("kaiser_window", window_length, periodic, formula, dtype, device, requires_grad)
