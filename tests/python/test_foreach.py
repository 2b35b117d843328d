"""torch._foreach_...: an operator on every tensor of a list."""
import pytest

import flambeau as torch
from flambeau._foreach import NAMES


def tensors():
    return [torch.tensor([0.25, 0.5]), torch.tensor([[0.75], [0.5]])]


def lists(values):
    return [v.tolist() for v in values]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_of_each_name(name):
    """Equals the operator of the name on each tensor; in place, the tensors themselves are changed."""
    given, base = tensors(), name[len("_foreach_"):].rstrip("_")
    more = {"lerp": [tensors(), 0.5], "addcdiv": [tensors(), tensors()], "addcmul": [tensors(), tensors()],
            "mm": [[torch.ones(2, 2)] * 2]}
    if base == "mm":
        given = [torch.ones(2, 2), torch.eye(2)]
    two = ("add", "clamp_max", "clamp_min", "copy", "div", "maximum", "minimum", "mul", "pow", "sub")
    args = more.get(base, [[x + 1 for x in tensors()]] if base in two else [])
    single = {"norm": torch.linalg.vector_norm, "copy": lambda x, y: y, "zero": torch.zeros_like,
              "clamp_max": torch.minimum, "clamp_min": torch.maximum}
    operator = single.get(base) or getattr(torch, base)
    expected = [operator(x, *(a[k] if isinstance(a, list) else a for a in args)).tolist()
                for k, x in enumerate(given)]
    result = getattr(torch, name)(given, *args)
    assert lists(result) == expected
    if name.endswith("_"):
        assert all(a is b for a, b in zip(result, given))
    else:
        assert type(result) is tuple


def test_numbers():
    assert lists(torch._foreach_add(tensors(), 1)) == lists(x + 1 for x in tensors())
    assert lists(torch._foreach_mul(tensors(), [1, 2])) == [[0.25, 0.5], [[1.5], [1.0]]]
    assert lists(torch._foreach_add(tensors(), tensors(), alpha=2)) == lists(x * 3 for x in tensors())
    assert lists(torch._foreach_maximum(tensors(), 0.5)) == [[0.5, 0.5], [[0.75], [0.5]]]
    assert lists(torch._foreach_norm(tensors(), 1)) == [0.75, 1.25]
    assert lists(torch._foreach_pow(2, tensors()[:1])) == [(2 ** tensors()[0]).tolist()]
    ones = [torch.ones(2), torch.ones(2, 1)]
    for scalars in ([2, 3], torch.tensor([2, 3])):
        assert lists(torch._foreach_addcmul(ones, ones, ones, scalars)) == [[3, 3], [[4], [4]]]
    assert lists(torch._foreach_addcdiv(ones, ones, ones, value=2)) == [[3, 3], [[3], [3]]]
    assert lists(torch._foreach_lerp(ones, tensors(), scalars=[0, 1])) == [[1, 1], [[0.75], [0.5]]]


def test_errors():
    with pytest.raises(RuntimeError, match="lists of one length"):
        torch._foreach_add(tensors(), [1])
    with pytest.raises(RuntimeError, match="got none"):
        torch._foreach_abs([])
    with pytest.raises(AttributeError):
        torch._foreach_nothing
