"""Forms of calls: numbers for tensors, lists, out=, views in place, names of overloads, second names."""
import math

import pytest

import flambeau as fl


@pytest.mark.parametrize("call", [
    lambda: fl.maximum(fl.ones(3), 2), lambda: fl.atan2(fl.ones(3), 2), lambda: fl.eq(2, fl.ones(3)),
    lambda: fl.pow(2, 3),
    lambda: fl.rsub(2, fl.ones(3)), lambda: fl.remainder(2, 3), lambda: fl.logical_and(fl.ones(3), 2),
])
def test_numbers_that_are_no_tensors(call):
    with pytest.raises(TypeError):
        call()


def test_numbers_in_the_places_of_tensors():
    x = fl.tensor([1.0, 2.0])
    assert fl.add(1, x).tolist() == [2, 3] and fl.pow(2, x).tolist() == [2, 4]
    assert fl.fmod(x, 2).tolist() == [1, 0]
    assert (2 - x).tolist() == [1, 0] and (2 ** x).tolist() == [2, 4] and (3 % x).tolist() == [0, 1]
    assert fl.where(x > 1, 1.0, 0.0).tolist() == [0, 1] and x.where(x > 1, fl.zeros(2)).tolist() == [0, 2]


def test_numbers_for_functions_of_two_tensors():
    x = fl.tensor([1.0, 2.0], requires_grad=True)
    y = x.float_power(2)
    (y + fl.float_power(2, x) + fl.float_power(x, exponent=0.1)).sum().backward()
    assert y.dtype is fl.float64 and y.tolist() == [1, 4] and fl.float_power(x, 1j).dtype is fl.complex128
    assert x.grad.tolist() == pytest.approx([2 * v + math.log(2) * 2**v + 0.1 * v**-0.9 for v in (1, 2)])
    assert fl.compile(lambda x, n: x.float_power(n), fullgraph=True)(x, 3).tolist() == [1, 8]
    d = x.detach().double()
    assert d.float_power_(2) is d and d.tolist() == [1, 4]
    for base, exponent in ((x.detach(), 2), (d, 1j), (d, fl.ones(2, dtype=fl.complex64))):
        with pytest.raises(RuntimeError, match="but the result has"):
            base.float_power_(exponent)
    with pytest.raises(TypeError, match="got int and float"):
        fl.float_power(2, 0.5)


def test_numbers_to_look_for_in_a_sequence():
    x, i = fl.tensor([0.1, 0.2, 2.0]), fl.tensor([1, 2, 3], dtype=fl.uint8)
    assert fl.searchsorted(x, 0.1).item() == 0 and fl.searchsorted(x, 0.1, right=True).item() == 1
    assert fl.searchsorted(x, 2, side="right", out_int32=True).item() == 3
    assert fl.searchsorted(i, 2.5).item() == 2 and fl.searchsorted(i, 300).item() == 3
    assert fl.bucketize(2, x, right=True).item() == 3 and fl.bucketize(2.5, i).item() == 2


def test_parts_by_each_name_of_an_overload():
    x = fl.arange(4)
    for parts in (fl.tensor_split(x, sections=2), x.tensor_split(indices=(2,)),
                  x.tensor_split(fl.tensor([2]))):
        assert [part.tolist() for part in parts] == [[0, 1], [2, 3]]


def test_draws_with_a_probability_for_each_element():
    x, p = fl.full((2, 3), 7), fl.tensor([0.0, 1.0, 1.0])
    assert x.bernoulli_(p) is x and x.tolist() == [[0, 1, 1]] * 2
    assert x.bernoulli_(1.0).sum().item() == 6 and 0 < fl.ones(1000).bernoulli_().sum().item() < 1000


def test_integers_for_lists_and_tensors_for_integers():
    x = fl.arange(6).view(2, 3)
    assert x.movedim(0, 1).shape == (3, 2) and x.view(fl.tensor(3), 2).shape == (3, 2)
    assert x.narrow(1, fl.tensor(1), 2).tolist() == [[1, 2], [4, 5]]
    assert fl.polygamma(1, fl.ones(1)).item() == pytest.approx(fl.ones(1).polygamma(1).item())


def test_out_of_every_function():
    out = fl.empty(0)
    assert fl.randn(3, out=out) is out and out.shape == (3,)
    indices = fl.empty(0, dtype=fl.int64)
    assert fl.nonzero(fl.tensor([0, 2]), out=indices) is indices and indices.tolist() == [[1]]
    with pytest.raises(RuntimeError, match="can't be cast"):
        fl.add(fl.ones(1), 1, out=fl.empty(1, dtype=fl.int64))


def test_views_in_place():
    base = fl.arange(6.0)
    x = base.view(2, 3)
    assert x.t_() is x and x.shape == (3, 2) and x.unsqueeze_(0).squeeze_().shape == (3, 2)
    x[0, 1] = 9
    assert base[3] == 9


def test_second_names():
    x = fl.tensor([-1.5, 2.0])
    assert fl.absolute(x).tolist() == x.absolute().tolist() == [1.5, 2] and fl.multiply.__name__ == "multiply"
    assert fl.concat([x, x]).shape == (4,) and fl.true_divide(x, 2).tolist() == [-0.75, 1]
    assert x.clone().absolute_().tolist() == [1.5, 2]


@pytest.mark.parametrize("call, dims", [
    (lambda x: fl.roll(x, 0, 0), IndexError),
    (lambda x: fl.tensordot(x, fl.ones(2), ([0], [0])), (IndexError, RuntimeError)),
])
def test_dimensions_of_a_tensor_that_has_none(call, dims):
    with pytest.raises(dims):
        call(fl.tensor(1.0))
    assert fl.movedim(fl.tensor(1.0), 0, 0).item() == 1


def test_flags_and_draws():
    x = fl.tensor([1.0, 2.0, 4.0])
    assert x.var(unbiased=False).item() == pytest.approx(x.var(correction=0).item())
    assert fl.std(x, 0, True).item() == pytest.approx(x.std().item())
    assert sorted(fl.randperm(5).tolist()) == [0, 1, 2, 3, 4]
    assert fl.randint(3, (50,)).max() < 3 and fl.randint(5, 6, (4,)).tolist() == [5] * 4
    assert fl.randn(4, dtype=fl.complex64).is_complex()


def test_compositions():
    a, b = fl.tensor([[1.0, 2.0]]), fl.tensor([3.0])
    assert fl.block_diag(a, b).tolist() == [[1, 2, 0], [0, 0, 3]] and fl.kron(a, a).tolist() == [[1, 2, 2, 4]]
    assert fl.cartesian_prod(fl.tensor([1, 2]), fl.tensor([3])).tolist() == [[1, 3], [2, 3]]
    assert fl.einsum("ij,kj->ik", a, a).item() == 5 and fl.broadcast_shapes((2, 1), (3,)) == (2, 3)
    values, inverse, counts = fl.unique(fl.tensor([3, 1, 3]), return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3], [1, 0, 1], [1, 2])
    assert fl.quantile(fl.tensor([1.0, 2.0, 3.0]), 0.5).item() == 2
    assert fl.equal(a, a) and not fl.allclose(a, a + 1)
    assert fl.where(fl.tensor([0, 1]))[0].tolist() == [1] and fl.norm(b).item() == 3
