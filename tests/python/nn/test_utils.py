"""Tools for modules and their gradients."""
import copy

import numpy as np
import pytest

import flambeau as fl
from flambeau import nn
from flambeau.nn.attention import SDPBackend, sdpa_kernel
from flambeau.nn.attention.flex_attention import create_block_mask, flex_attention
from flambeau.nn.utils import parametrizations, parametrize, prune


@pytest.fixture(autouse=True)
def seed():
    fl.manual_seed(0)


def check(got, expected, tolerance=1e-5):
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def with_gradients(*gradients):
    parameters = []
    for g in gradients:
        p = nn.Parameter(fl.zeros(len(g)))
        p.grad = fl.tensor(g)
        parameters.append(p)
    return parameters


def test_clip_gradients():
    parameters = with_gradients([3.0, 0.0], [4.0])
    assert nn.utils.get_total_norm([p.grad for p in parameters]).item() == 5
    assert nn.utils.clip_grad_norm_(parameters, 1.0).item() == 5
    check(parameters[0].grad, [0.6, 0])
    check(parameters[1].grad, [0.8])
    assert nn.utils.clip_grad_norm_(parameters, 10.0, norm_type=float("inf")).item() == pytest.approx(0.8)
    nn.utils.clip_grad_value_(parameters, 0.5)
    check(parameters[0].grad, [0.5, 0])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(with_gradients([float("nan")]), 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector():
    net = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (6,)
    nn.utils.vector_to_parameters(fl.arange(6.0), net.parameters())
    assert net.weight.tolist() == [[0, 1], [2, 3]] and net.bias.tolist() == [4, 5]


def test_fusion_of_batch_norm():
    norm = nn.BatchNorm2d(3)
    with fl.no_grad():
        norm.running_mean.copy_(fl.randn(3))
        norm.running_var.copy_(fl.rand(3) + 0.5)
        norm.weight.copy_(fl.randn(3))
    conv, x = nn.Conv2d(2, 3, 3, bias=False), fl.randn(1, 2, 5, 5)
    both = nn.Sequential(conv, norm).eval()
    check(nn.utils.fuse_conv_bn_eval(conv, norm)(x), both(x).detach().numpy())
    linear, flat = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval()
    flat.load_state_dict(norm.state_dict())
    rows = x[0, :, 0].T
    check(nn.utils.fuse_linear_bn_eval(linear, flat)(rows), flat(linear(rows)).detach().numpy())


def test_functional_call():
    net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1).eval())
    own = net[0].weight
    other = {"0.weight": fl.ones(1, 2), "0.bias": fl.zeros(1)}
    y = nn.utils.stateless.functional_call(net, other, fl.ones(3, 2))
    check(y, np.full((3, 1), 2 / np.sqrt(1 + 1e-5)))
    assert net[0].weight is own
    with pytest.raises(RuntimeError, match=r"Missing key\(s\)"):
        nn.utils.stateless.functional_call(net, other, fl.ones(3, 2), strict=True)


def test_weight_norm():
    for norm in (nn.utils.weight_norm, parametrizations.weight_norm):
        net = nn.Linear(3, 2)
        before = net.weight.detach().clone()
        norm(net)
        x = fl.randn(1, 3)
        check(net(x), (x @ before.T + net.bias).detach().numpy())
        net(x).sum().backward()
        assert all(p.grad is not None for p in net.parameters()) and len(list(net.parameters())) == 3
    parametrize.remove_parametrizations(net, "weight")
    check(net.weight, before.numpy())
    assert type(net) is nn.Linear


def test_spectral_norm():
    for norm in (nn.utils.spectral_norm, parametrizations.spectral_norm):
        net = norm(nn.Linear(5, 4), n_power_iterations=20)
        net(fl.randn(2, 5))
        assert abs(np.linalg.norm(net.weight.detach().numpy(), 2) - 1) < 1e-3


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, a):
        return a.triu()


def test_parametrize():
    net = nn.Linear(3, 3)
    parametrize.register_parametrization(net, "weight", Symmetric())
    assert parametrize.is_parametrized(net, "weight") and type(net).__name__ == "ParametrizedLinear"
    check(net.weight, net.weight.T.detach().numpy())
    assert sorted(net.state_dict()) == ["bias", "parametrizations.weight.original"]
    net.weight = fl.eye(3)
    check(net.weight, np.eye(3))
    twin = copy.deepcopy(net)
    twin.weight = fl.zeros(3, 3)
    check(net.weight, np.eye(3))
    with parametrize.cached():
        assert net.weight is net.weight
    assert net.weight is not net.weight
    net(fl.ones(1, 3)).sum().backward()
    assert net.parametrizations.weight.original.grad is not None
    parametrize.remove_parametrizations(net, "weight", leave_parametrized=False)
    assert type(net) is nn.Linear and isinstance(net.weight, nn.Parameter)
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(net, "weight", nn.Flatten(0))


def test_skip_init():
    net = nn.utils.skip_init(nn.Linear, 3, 4)
    assert net.weight.shape == (4, 3) and net.weight.device.type == "cpu"


def test_prune():
    net = nn.Linear(4, 1)
    with fl.no_grad():
        net.weight.copy_(fl.tensor([[1.0, -4.0, 2.0, 3.0]]))
    prune.l1_unstructured(net, "weight", amount=2)
    assert net.weight.tolist() == [[0, -4, 0, 3]] and prune.is_pruned(net)
    assert sorted(dict(net.named_buffers())) == ["weight_mask"]
    prune.remove(net, "weight")
    assert not prune.is_pruned(net) and isinstance(net.weight, nn.Parameter)
    assert net.weight.tolist() == [[0, -4, 0, 3]]


def test_flex_attention():
    q, k, v = (fl.randn(1, 2, 6, 4) for _ in range(3))
    causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, 6, 6, BLOCK_SIZE=2)
    with sdpa_kernel(SDPBackend.MATH):
        expected = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    check(flex_attention(q, k, v, block_mask=causal), expected.numpy())
    assert causal.to_dense()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    shifted = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + 3)
    check(shifted, nn.functional.scaled_dot_product_attention(q, k, v).numpy())
    with pytest.raises(ValueError, match="has to be a multiple"):
        flex_attention(q, fl.randn(1, 3, 6, 4), fl.randn(1, 3, 6, 4), enable_gqa=True)


def test_several_devices_are_refused():
    with pytest.raises(NotImplementedError, match="several devices"):
        nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
