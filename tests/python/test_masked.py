"""torch.masked: what does not count changes nothing, and the rest is what the plain operation gives."""
import math

import pytest

import flambeau as torch
from flambeau import masked

X = torch.tensor([[3.0, 1.0, 2.0], [5.0, 4.0, 6.0]])
MASK = torch.tensor([[True, False, True], [False, False, False]])


@pytest.mark.parametrize("name,expected", [
    ("sum", [5, 0]), ("prod", [6, 1]), ("amax", [3, -math.inf]), ("amin", [2, math.inf]),
    ("mean", [2.5, math.nan]),
    ("median", [2, math.nan]), ("logsumexp", [math.log(math.exp(3) + math.exp(2)), -math.inf]),
    ("norm", [math.sqrt(13), 0]), ("var", [0.5, math.nan]), ("std", [math.sqrt(0.5), math.nan]),
    ("argmax", [0, 0]), ("argmin", [2, 0]),
])
def test_reductions_of_rows(name, expected):
    arguments = (2.0, 1) if name == "norm" else (1,)
    out = getattr(masked, name)(X, *arguments, mask=MASK)
    assert out.dtype == torch.float32
    for got, want in zip(out.tolist(), expected):
        assert got == pytest.approx(want, nan_ok=True)


def test_without_a_mask_every_element_counts():
    assert masked.sum(X).item() == X.sum().item()
    assert masked.mean(X, 0, keepdim=True).shape == (1, 3)
    assert masked.sum(torch.tensor([1, 2])).dtype == torch.int64


def test_a_mask_is_broadcast_and_has_no_more_dimensions():
    assert masked.sum(X, mask=torch.tensor([True, False, False])).item() == 8
    with pytest.raises(IndexError, match="more dimensions"):
        masked.sum(X[0], mask=MASK)


def test_lines():
    assert masked.cumsum(X, 1, mask=MASK).tolist() == [[3, 3, 5], [0, 0, 0]]
    assert masked.cumprod(X, 1, mask=MASK).tolist() == [[3, 3, 6], [1, 1, 1]]
    more, less = 1 / (1 + math.exp(-1)), 1 / (1 + math.e)
    assert masked.softmax(X, 1, mask=MASK)[0].tolist() == pytest.approx([more, 0, less])
    assert masked.softmin(X, 1, mask=MASK)[0].tolist() == pytest.approx([less, 0, more])
    assert masked.normalize(X, 1.0, 1, mask=MASK)[0].tolist() == pytest.approx([0.6, 0, 0.4])


def test_gradient_reaches_what_counts():
    x = X.clone().requires_grad_(True)
    masked.sum(x, mask=MASK).backward()
    assert x.grad.tolist() == MASK.float().tolist()


def test_dimensions_are_checked():
    with pytest.raises(IndexError, match="out of range"):
        masked.sum(X, 2)
    with pytest.raises(RuntimeError, match="multiple times"):
        masked.sum(X, (0, -2))
    with pytest.raises(ValueError, match="Only one"):
        masked.var(X, 1, True, correction=0)


def test_masks_of_results():
    assert masked._output_mask(masked.sum, X, 1, mask=MASK).tolist() == [True, False]
    columns = masked._output_mask(masked.norm, X, 2.0, dim=0, keepdim=True, mask=MASK)
    assert columns.tolist() == [[True, False, True]]
    assert masked._output_mask(masked.amax, X, mask=MASK).item()
    assert masked._output_mask(masked.softmax, X, 1, mask=MASK[0]).tolist() == [MASK[0].tolist()] * 2
    assert masked._input_mask(X, mask=MASK[0]).shape == X.shape
    for call in (lambda: masked._output_mask(torch.sum, X), lambda: masked._output_mask(max, X, mask=MASK),
                 lambda: masked._output_mask(masked.logaddexp, X, X, mask=MASK)):
        with pytest.raises(ValueError):
            call()
