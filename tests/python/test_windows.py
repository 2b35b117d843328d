"""Window functions against their formulas, and what they refuse."""
import math

import pytest

import flambeau as torch
from flambeau.signal import windows


def hann(n, points):
    return 0.5 - 0.5 * math.cos(2 * math.pi * n / (points - 1))


def hamming(n, points):
    return 0.54 - 0.46 * math.cos(2 * math.pi * n / (points - 1))


def blackman(n, points):
    turn = 2 * math.pi * n / (points - 1)
    return 0.42 - 0.5 * math.cos(turn) + 0.08 * math.cos(2 * turn)


def bartlett(n, points):
    return 1 - abs(2 * n / (points - 1) - 1)


def cosine(n, points):
    return math.sin(math.pi * (n + 0.5) / points)


def gaussian(n, points):
    return math.exp(-(((n - (points - 1) / 2) / 1.0) ** 2) / 2)


def exponential(n, points):
    return math.exp(-abs(n - (points - 1) / 2))


@pytest.mark.parametrize("formula", [hann, hamming, blackman, bartlett, cosine, gaussian, exponential])
@pytest.mark.parametrize("symmetric", [True, False])
def test_formula(formula, symmetric):
    out = getattr(windows, formula.__name__)(7, sym=symmetric, dtype=torch.float64)
    points = 7 if symmetric else 8
    assert out.tolist() == pytest.approx([formula(n, points) for n in range(7)], abs=1e-12)


def test_short_windows_and_options():
    assert windows.hann(0).shape == (0,)
    assert windows.hann(1).tolist() == windows.bartlett(1, sym=False).tolist() == [1]
    assert windows.general_cosine(4, a=[1.0]).tolist() == [1] * 4
    assert windows.nuttall(5, requires_grad=True).requires_grad


@pytest.mark.parametrize("call", [
    lambda: windows.hann(-1), lambda: windows.hann(3, dtype=torch.int64), lambda: windows.gaussian(3, std=-1),
    lambda: windows.exponential(3, center=1, sym=True), lambda: windows.general_cosine(3, a=[]),
])
def test_refused(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett"])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows_of_the_torch_namespace(name, periodic):
    out = getattr(torch, f"{name}_window")(7, periodic, dtype=torch.float64)
    points = 8 if periodic else 7
    assert out.tolist() == pytest.approx([globals()[name](n, points) for n in range(7)], abs=1e-12)


def test_arguments_of_windows():
    assert torch.hann_window(3).dtype == torch.float32 and torch.hann_window(0).shape == (0,)
    assert torch.bartlett_window(1).tolist() == [1]
    assert torch.hamming_window(4, True, 0.5, 0.4).tolist() == pytest.approx([0.1, 0.5, 0.9, 0.5])
    assert torch.kaiser_window(5, False, 3.0)[2].item() == 1
    assert torch.kaiser_window(6).tolist() == windows.kaiser(6, sym=False).tolist()
    assert torch.hann_window(3, dtype=torch.float16, requires_grad=True).requires_grad
    with torch.device("meta"):
        assert torch.hann_window(3).is_meta
    for call in (lambda: torch.hann_window(-1), lambda: torch.hann_window(3, dtype=torch.int64)):
        with pytest.raises(RuntimeError, match="hann_window"):
            call()
