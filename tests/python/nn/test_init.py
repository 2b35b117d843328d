"""First values: the moments and the structure that they promise."""
import math

import pytest

import flambeau as fl
from flambeau.nn import init


@pytest.fixture(autouse=True)
def seed():
    fl.manual_seed(0)


def test_gains():
    assert init.calculate_gain("relu") == math.sqrt(2) and init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("leaky_relu", 1) == 1
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        init.calculate_gain("nothing")


@pytest.mark.parametrize("fill, std", [
    (lambda t: init.xavier_uniform_(t), math.sqrt(2 / 500)),
    (lambda t: init.xavier_normal_(t), math.sqrt(2 / 500)),
    (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / 300)),
    (lambda t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / 200)),
    (lambda t: init.normal_(t, std=0.5), 0.5), (lambda t: init.uniform_(t, -1, 1), 1 / math.sqrt(3)),
])
def test_moments(fill, std):
    t = fl.empty(200, 300)
    assert fill(t) is t and not t.requires_grad
    assert abs(t.mean().item()) < 0.02 * std * 5 and abs(t.std().item() / std - 1) < 0.02


def test_trunc_normal():
    t = init.trunc_normal_(fl.empty(10000), std=2.0, a=-1.0, b=3.0)
    assert t.min().item() >= -1 and t.max().item() <= 3 and 0.4 < t.mean().item() < 0.95


def test_structures():
    assert init.eye_(fl.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    kernel = init.dirac_(fl.empty(2, 2, 3, 3))
    image = fl.randn(1, 2, 5, 5)
    assert fl.allclose(fl.conv2d(image, kernel, padding=1), image)
    assert init.constant_(fl.empty(2), 3).tolist() == [3, 3] and init.zeros_(fl.empty(1)).item() == 0
    sparse = init.sparse_(fl.empty(10, 4), 0.3)
    assert (sparse == 0).sum(0).tolist() == [3, 3, 3, 3]


def test_errors():
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        init.xavier_uniform_(fl.empty(3))
    with pytest.raises(ValueError, match="Mode fan not supported"):
        init.kaiming_uniform_(fl.empty(3, 3), mode="fan")
