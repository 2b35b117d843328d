"""Attention as one operator: what a device's library computes, by its definition on the CPU."""
import pytest

import flambeau as fl
import flambeau.nn.functional as F


def operands(key_heads=4, dtype=fl.float64):
    fl.manual_seed(0)
    return [fl.randn(2, heads, tokens, 8, dtype=dtype).requires_grad_()
            for heads, tokens in ((4, 6), (key_heads, 5), (key_heads, 5))]


def whole(q, k, v, mask=None, seed=None, dropout=0.0, causal=False, scale=8**-0.5):
    return fl._attention(q, k, v, mask, seed, dropout, causal, scale)[0]


def gradients(out, tensors):
    return fl.autograd.grad(out.square().sum(), tensors)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_output_and_gradients(compiled, causal):
    tensors = operands(key_heads=2)
    expected = F.scaled_dot_product_attention(*tensors, is_causal=causal, enable_gqa=True)
    f = fl.compile(whole) if compiled else whole
    found = f(*tensors, causal=causal)
    fl.testing.assert_close(found, expected)
    fl.testing.assert_close(gradients(found, tensors), gradients(expected, tensors))


def test_logarithm_of_sums_and_its_gradient():
    tensors = operands()
    q, k, _ = tensors
    sums = fl._attention(*tensors, None, None, 0.0, False, 0.5)[1]
    expected = (q @ k.mT * 0.5).logsumexp(-1)
    fl.testing.assert_close(sums, expected)
    fl.testing.assert_close(fl.autograd.grad(sums.sum(), (q, k)), fl.autograd.grad(expected.sum(), (q, k)))


def test_mask_with_a_gradient():
    tensors = operands()
    mask = fl.randn(2, 1, 6, 5, dtype=fl.float64, requires_grad=True)
    expected = F.scaled_dot_product_attention(*tensors, mask)
    found = whole(*tensors, mask)
    fl.testing.assert_close(found, expected)
    fl.testing.assert_close(gradients(found, [mask]), gradients(expected, [mask]))


@pytest.mark.parametrize("numbers", [False, True])
def test_queries_that_may_look_at_nothing(numbers):
    """0, and so are their gradients."""
    tensors = operands()
    mask = fl.ones(6, 5, dtype=fl.bool)
    mask[2] = False
    if numbers:
        mask = fl.where(mask, 0.0, -fl.inf).to(fl.float64)
    out = F.scaled_dot_product_attention(*tensors, mask)
    assert (out[:, :, 2] == 0).all()
    by_query, by_key, _ = gradients(out, tensors)
    assert (by_query[:, :, 2] == 0).all() and by_query.isfinite().all() and by_key.isfinite().all()


def test_dropout_by_a_seed():
    tensors = operands(dtype=fl.float32)
    seed = fl.tensor([12345])
    first, again = (whole(*tensors, seed=seed, dropout=0.5) for _ in range(2))
    assert fl.equal(first, again) and fl.equal(fl.compile(whole)(*tensors, seed=seed, dropout=0.5), first)
    assert not fl.equal(first, whole(*tensors, seed=seed + 1, dropout=0.5))


def test_result_has_the_layout_of_the_query():
    q, k, v = operands()
    turned = q.detach().transpose(1, 2).contiguous().transpose(1, 2)
    assert whole(q, k, v).is_contiguous()
    assert whole(turned, k, v).transpose(1, 2).is_contiguous()


def test_second_derivatives():
    tensors = operands()
    assert fl.autograd.gradgradcheck(whole, [x[:1, :1, :3] for x in tensors])
