"""How Python's arguments reach an operator, and what is said where they don't fit."""
import threading

import pytest

import flambeau as fl


def test_positional_keyword_default():
    x = fl.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.sum().item() == 10
    assert x.sum(0).tolist() == fl.sum(x, dim=0).tolist() == fl.sum(input=x, axis=0).tolist() == [4, 6]
    assert x.sum(dim=[0, 1], keepdim=True).shape == (1, 1)
    assert fl.add(x, x, alpha=2).tolist() == [[3, 6], [9, 12]]
    assert x.sum(dtype=fl.float64).dtype is fl.float64
    assert fl.full((2,), 3).dtype is fl.int64


def test_bare_integers():
    x = fl.arange(6)
    assert x.view(2, 3).shape == x.reshape((3, 2)).T.shape == (2, 3)
    assert fl.zeros(2, 3).permute(1, 0).shape == (3, 2)
    assert fl.ones(2, 1).expand(2, 4).shape == (2, 4)
    assert x.repeat(2, 2).shape == (2, 12)


def test_overloads():
    x = fl.tensor([[1.0, 5.0], [7.0, 4.0]])
    values, indices = x.max(1)
    assert values.tolist() == [5, 7] and indices.tolist() == [1, 0]
    assert x.max(dim=1).values.tolist() == [5, 7] and x.max().item() == 7
    assert fl.max(x, fl.tensor(4.5)).tolist() == [[4.5, 5], [7, 4.5]]
    assert fl.where(x > 4, x, 0).tolist() == [[0, 5], [7, 0]]
    assert x.clamp(min=2, max=5).tolist() == [[2, 5], [5, 4]]


def test_results_in_given_tensors():
    x = fl.tensor([3.0, 1.0])
    out = fl.empty(2)
    assert fl.mul(x, 2, out=out) is out and out.tolist() == [6, 2]
    assert fl.mul(x, 2, out=None).tolist() == [6, 2]
    values, indices = fl.empty(()), fl.empty((), dtype=fl.int64)
    result = fl.max(x, 0, out=(values, indices))
    assert result.values is values and indices.item() == 0 and values.item() == 3


def test_factories_take_requires_grad():
    assert fl.ones(2, requires_grad=True).requires_grad and not fl.ones(2).requires_grad


@pytest.mark.parametrize("call, parts", [
    (lambda x: fl.erfinv("text"), ["erfinv", "argument 'self' (position 1) must be Tensor, not str"]),
    (lambda x: fl.add(x, None), ["add(): argument 'other' (position 2) must be Tensor, not NoneType"]),
    (lambda x: fl.exp(x, x), ["takes 1 positional arguments, got 2"]),
    (lambda x: fl.exp(x, blue=1), ["unexpected keyword argument 'blue'"]),
    (lambda x: fl.exp(), ["missing argument 'self'"]),
    (lambda x: fl.exp(x, self=x), ["given twice"]),
    (lambda x: x.sum(1.5), ["sum.dim_IntList", "float"]),
    (lambda x: fl.cat(x), ["Tensor[]"]),
    (lambda x: fl.cat([x, 1]), ["list of Tensor"]),
    (lambda x: x.view("a"), ["view.dtype", "view("]),
])
def test_type_errors_name_signatures_and_types(call, parts):
    with pytest.raises(TypeError) as raised:
        call(fl.ones(3))
    for part in parts:
        assert part in str(raised.value)


@pytest.mark.parametrize("call, error", [
    (lambda: fl.ones(2) + fl.ones(3), RuntimeError),
    (lambda: fl.ones(2).sum(5), IndexError),
    (lambda: fl.ones(2, 3).view(7), RuntimeError),
    (lambda: fl.device("blue"), (ValueError, RuntimeError)),
    (lambda: fl.zeros(2, device="meta").item(), fl.UnsupportedError),
])
def test_errors(call, error):
    with pytest.raises(error):
        call()
    assert issubclass(fl.UnsupportedError, RuntimeError) and issubclass(fl.OutOfMemoryError, RuntimeError)


def test_operators_describe_themselves():
    assert fl.erfinv.__name__ == "erfinv" and "erfinv(Tensor self)" in fl.erfinv.__doc__
    assert "add.Tensor" in fl.Tensor.add.__doc__ and repr(fl.add) == "<function add>"


def test_threads():
    x = fl.arange(100000).to(fl.float32)
    results = []

    def work():
        for _ in range(20):
            results.append((x * 2 + 1).sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 80 and len(set(results)) == 1
