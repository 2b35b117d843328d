"""Operators at their edges: errors, empty and 0-dim tensors, results whose sizes depend on elements."""
import math

import pytest

import flambeau as torch


@pytest.mark.parametrize("kind", [IndexError, RuntimeError])
def test_an_index_from_data_outside_is_an_error_of_both_types(kind):
    x = torch.tensor([1.0, 2.0])
    with pytest.raises(kind, match="out of bounds"):
        torch.gather(x, 0, torch.tensor([3]))
    with pytest.raises(kind, match="out of bounds"):
        torch.index_select(x, 0, torch.tensor([3]))


def test_an_index_outside_is_told_with_the_size():
    x = torch.arange(6.0).reshape(2, 3)
    for kernel in (torch.gather, torch.compile(torch.gather, dynamic=True)):
        for size in (3, 5):
            with pytest.raises(IndexError, match=f"index {size} is out of bounds for a dimension of size {size}$"):
                kernel(torch.ones(2, size), 1, torch.tensor([[size]]))
    with pytest.raises(IndexError, match="index 7 is out of bounds for a dimension of size 3$"):
        x[:, torch.tensor([7])]


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integers_divided_by_a_tensor_with_a_zero(name):
    function = getattr(torch, name)
    a, b = torch.tensor([5, 7]), torch.tensor([2, 0])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        function(a, b)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(a.clone(), name + "_")(b)
    assert function(a, torch.tensor([2, 4])).dtype == torch.int64
    assert math.isnan(torch.fmod(torch.tensor([1.0]), torch.tensor([0.0])).item())


def test_rolling_a_0_dim_tensor():
    assert torch.roll(torch.tensor(3.0), 1).item() == 3
    with pytest.raises(IndexError, match="no dimensions"):
        torch.roll(torch.tensor(3.0), 0, 0)


def test_masks_in_place_and_results_of_unknown_size_into_out():
    x = torch.arange(6.0)
    x.index_put_((x > 3,), torch.tensor([10.0, 20.0]))
    assert x.tolist() == [0, 1, 2, 3, 10, 20]
    out = torch.empty(0)
    assert torch.masked_select(x, x > 5, out=out) is out
    assert out.tolist() == [10, 20]


def test_a_mask_is_bool_and_a_value_one_number():
    x = torch.zeros(2)
    with pytest.raises(RuntimeError, match="boolean masks"):
        x.masked_fill(torch.tensor([1, 0]), 1.0)
    with pytest.raises(RuntimeError, match="0-dimensional value"):
        x.masked_fill(torch.tensor([True, False]), torch.zeros(1))
    with pytest.raises(RuntimeError, match="without overflow"):
        x.masked_fill(torch.tensor([True, False]), 1j)


def test_factors_of_integer_products_are_integers():
    ones = torch.ones((2, 2, 2), dtype=torch.int64)
    out = torch.baddbmm(ones, ones, ones, beta=0.6, alpha=1.7)
    assert out.dtype == torch.int64 and out.tolist() == [[[2, 2], [2, 2]]] * 2


def test_logaddexp2_keeps_a_number_in_float64():
    x = torch.tensor([0.1], dtype=torch.float64)
    expected = math.log2(2**0.1 + 2**0.3)
    assert abs(torch.logaddexp2(x, torch.tensor(0.3, dtype=torch.float64)).item() - expected) < 1e-15


def test_powers_of_a_spaced_integer_range():
    assert torch.logspace(2, 1.2, 2, dtype=torch.int64).tolist() == [100, 10]


def test_views_in_place():
    x = torch.arange(6.0).reshape(2, 3)
    assert x.unsqueeze_(0) is x and x.shape == (1, 2, 3)
    assert x.squeeze_().shape == (2, 3)
    assert x.t_().stride() == (1, 3) and x.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.transpose_(0, 1).is_contiguous()
    assert x.as_strided_((2,), (3,), 1).tolist() == [1, 4]


def test_views_in_place_are_differentiated():
    leaf = torch.arange(6.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf.unsqueeze_(0)
    x = leaf * 2
    x.unsqueeze_(1)
    assert x.shape == (6, 1) and x.requires_grad
    (x * torch.arange(6.0).reshape(6, 1)).sum().backward()
    assert leaf.grad.tolist() == [0, 2, 4, 6, 8, 10]


def test_an_extreme_of_nothing():
    with pytest.raises(RuntimeError, match="numel"):
        torch.amax(torch.zeros((3, 0)))
    assert torch.amax(torch.zeros((3, 0)), 0).shape == (0,)


def test_draws_repeat_with_their_seed_in_every_form():
    def draw(f):
        torch.manual_seed(3)
        return f()

    p = torch.tensor([0.2, 0.3, 0.5])
    for f in (lambda: torch.randperm(10), lambda: torch.multinomial(p, 5, True),
              lambda: torch.empty(4).exponential_(),
              lambda: torch.empty(4).random_(5), lambda: torch.normal(p, 1.0)):
        assert draw(f).tolist() == draw(f).tolist()
    out = torch.empty(10, dtype=torch.int64)
    assert draw(lambda: torch.randperm(10, out=out)).tolist() == draw(lambda: torch.randperm(10)).tolist()
    assert sorted(out.tolist()) == list(range(10))
    assert sorted(draw(lambda: torch.multinomial(p, 3)).tolist()) == [0, 1, 2]


def test_divisors():
    a, b = torch.tensor([12, -18, 0, 7]), torch.tensor([18, 12, 0, 0])
    assert torch.gcd(a, b).tolist() == [6, 6, 0, 7]
    assert torch.lcm(a, b).tolist() == [36, 36, 0, 0]
    big = torch.tensor([7540113804746346429, 2**62])
    assert torch.gcd(big, torch.tensor([4660046610375530309, 2**40])).tolist() == [1, 2**40]


def test_numbers_taken_apart():
    x = torch.tensor([0.0, -0.75, 8.0, 1e-45, float("inf"), 3e38])
    mantissa, exponent = torch.frexp(x)
    assert exponent.dtype == torch.int32 and exponent.tolist() == [0, 0, 4, -148, 0, 128]
    assert mantissa.tolist()[:4] == [0, -0.75, 0.5, 0.5]
    finite = torch.isfinite(x)
    assert torch.ldexp(mantissa, exponent)[finite].tolist()[:3] == x[finite].tolist()[:3]


def test_order_statistics_with_nan():
    x = torch.tensor([3.0, float("nan"), 1.0, 2.0])
    assert torch.nanmedian(x).item() == 2
    assert math.isnan(torch.quantile(x, 0.5).item())
    assert torch.nanquantile(x, torch.tensor([0.0, 0.5, 1.0])).tolist() == [1, 2, 3]
    values, indices = torch.mode(torch.tensor([[1, 2, 2, 3, 3]]))
    assert values.tolist() == [2] and indices.item() in (1, 2)


@pytest.mark.parametrize("call", [
    lambda t: -t, lambda t: +t, lambda t: t - t, lambda t: t - 1, lambda t: 1.5 - t,
    lambda t: torch.ones(1) - t,
    lambda t: torch.ones(1) - True, lambda t: t.clone().neg_()])
def test_bool_has_no_sign(call):
    with pytest.raises(NotImplementedError, match="bool tensor"):
        call(torch.tensor([True]))


def test_reductions_refuse_more_than_64_dimensions():
    many = torch.ones([1] * 65)
    for reduce in (torch.sum, torch.amax, torch.argmax, torch.aminmax, torch.all):
        with pytest.raises(RuntimeError, match="up to 64 dims are supported"):
            reduce(many, dim=-1)
    assert torch.sum(torch.ones([1] * 64)).item() == 1


def test_complex_takes_two_tensors_of_one_dtype():
    with pytest.raises(NotImplementedError, match="both inputs to be float32 or float64"):
        torch.complex(torch.ones(2), torch.ones(2, dtype=torch.int32))


@pytest.mark.parametrize("call", [
    lambda out: torch.amax(torch.ones(2, 3), 0, out=out), lambda out: torch.gather(
        torch.ones(2, 3), 0, torch.zeros(1, 3, dtype=torch.int64), out=out),
    lambda out: torch.complex(torch.ones(3), torch.ones(3), out=out)])
def test_some_results_are_not_cast_to_out(call):
    with pytest.raises(RuntimeError, match="expected an out tensor of dtype"):
        call(torch.empty(3, dtype=torch.complex128))


def test_outputs_that_overlap():
    both = torch.empty(3)
    with pytest.raises(ValueError, match="must not overlap"):
        torch.aminmax(torch.ones(2, 3), dim=0, out=(both, both))
    q = torch.geqrf(torch.eye(2), out=(torch.empty(2, 2), torch.empty(2)))
    assert q.a.shape == (2, 2) and q.tau.shape == (2,)


def test_cat_into_what_it_joins():
    whole = torch.zeros(4, 3)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.cat([torch.ones(1, 3), whole[1:]], out=whole)
    assert torch.cat([torch.ones(1, 3), whole[3:]], out=whole[:2]).tolist() == [[1] * 3, [0] * 3]


def test_safe_softmax_of_nothing_has_no_gradient():
    x = torch.tensor([[-math.inf, -math.inf], [1.0, 1.0]], requires_grad=True)
    y = torch.ops.aten._safe_softmax.default(x, 1)
    y.backward(torch.tensor([[1.0, 2.0], [1.0, 3.0]]))
    assert y.tolist() == [[0, 0], [0.5, 0.5]] and x.grad.tolist() == [[0, 0], [-0.5, 0.5]]


def test_operators_of_pytorchs_rules():
    x, aten = torch.arange(8.0).view(1, 1, 2, 4).requires_grad_(), torch.ops.aten
    y, where = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    g = torch.tensor([[[[3.0, 4.0]]]], requires_grad=True)
    given = aten.max_pool2d_with_indices_backward(g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, where)
    assert given.tolist() == [[[[0, 0, 0, 0], [0, 3, 0, 4]]]]
    given.sum().backward()
    assert g.grad.tolist() == [[[[1, 1]]]] and x.grad.abs().sum().item() == 0
    q, k = torch.ones(1, 1, 2, 4), torch.zeros(1, 1, 3, 4)
    out, total = aten._scaled_dot_product_flash_attention_for_cpu(q, k, k + 5, is_causal=True)
    assert out.flatten().tolist() == [5] * 8 and torch.allclose(total, torch.tensor([1.0, 2.0]).log())
    with pytest.raises(RuntimeError, match="no schema of aten::relu"):
        aten.relu(3)


def test_torch_has_its_own_name():
    assert torch.torch is torch
    assert torch.Tensor.__rdiv__(torch.tensor([2.0]), 3).tolist() == [1.5]
