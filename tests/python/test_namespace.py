"""Names of the torch namespace beside the operators of the table."""
import numpy as np
import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.torch_version import TorchVersion


def close(a, b, tolerance=1e-5):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    return True


def test_versions_are_compared_by_numbers():
    v = TorchVersion("2.15.0+x1")
    assert v >= "2.4" and v > (2, 4) and v < (3,) and v < "2.100" and v > [2, 9] and v >= "2.15"
    assert v == "2.15.0+x1" and v != "2.15.0" and v > "2.15.0" and v != (2, 15) and v != None  # noqa: E711
    assert TorchVersion("2.15.0") == (2, 15) and TorchVersion("2.15.0a0+git") < "2.15" < v
    assert TorchVersion("2.15.0.dev3") < "2.15.0a1" and TorchVersion("2.15.0rc1") < "2.15.0rc2"
    assert v < "parrot" and str(v) == "2.15.0+x1" and hash(v) == hash("2.15.0+x1") and v.split(".")[0] == "2"
    assert isinstance(torch.__version__, TorchVersion) and torch.__version__ >= "2.4"
    with pytest.raises(TypeError):
        v > 3


def test_forms_of_functions():
    torch.manual_seed(0)
    x, y, w = torch.randn(4, 3), torch.randn(4, 2), torch.randn(5, 3, 2)
    assert close(torch.bilinear(x, y, w), F.bilinear(x, y, w))
    assert torch.alpha_dropout(x, 0.5, False) is x and torch.feature_dropout(x, 0.0, True) is x
    z = torch.ones(2, 8, 4)
    assert torch.feature_alpha_dropout_(z, 0.5, True) is z and (z == z[:, :, :1]).all()
    assert torch.native_channel_shuffle(torch.arange(4.0).view(1, 4, 1, 1), 2).flatten().tolist() == [0, 2,
                                                                                                      1, 3]
    table = torch.full((3, 4), 2.0)
    torch.embedding_renorm_(table, torch.tensor([1, 1]), 1.0, 2.0)
    assert table[0].tolist() == [2] * 4 and table[1].norm().item() == pytest.approx(1, abs=1e-4)
    assert torch._shape_as_tensor(x).tolist() == [4, 3]
    assert torch.nuclear_norm(torch.eye(3)).item() == pytest.approx(3)
    assert torch.nuclear_norm(torch.eye(3), keepdim=True).shape == (1, 1)
    assert close(torch.norm_except_dim(x, 2, 0), x.norm(dim=1, keepdim=True))
    assert torch.norm_except_dim(x, 1, -1).item() == pytest.approx(x.abs().sum().item())
    assert close(torch._weight_norm(x, torch.ones(4, 1)), F.normalize(x))
    assert torch.functional.einsum is torch.einsum
    assert torch.linalg.vander(torch.tensor(2.0), N=3).tolist() == [[1, 2, 4]]
    real = torch.ones(2)
    assert torch.conj_physical(real) is real and real.conj_physical() is real
    assert torch.conj_physical(torch.tensor([1j])).tolist() == [-1j]
    assert torch.normal(0.0, 1.0, (2,), layout=torch.strided, device="cpu").shape == (2,)
    assert "threads" in torch.__config__.parallel_info().lower()
    assert torch.__version__ in torch.__config__.show()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_gradients_that_are_operators(name):
    x, g = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
    output = getattr(torch, name)(x, 1)
    output.backward(g)
    found = getattr(torch, f"_{name}_backward_data")(g, output.detach(), 1, torch.float32)
    assert close(found, x.grad)
    assert getattr(torch.ops.aten, f"_{name}_backward_data").default(g, g, 1,
                                                                     torch.float64).dtype == torch.float64


def test_operators_by_their_inner_names():
    x = torch.randn(4, 3, 2)
    running = torch.zeros(3), torch.ones(3)
    out, mean, scale, rest = torch._batch_norm_with_update(x, None, None, *running, 0.5, 1e-5)
    assert close(out, F.batch_norm(x, None, None, training=True)) and rest.shape == (0,)
    assert close(running[0], mean / 2)
    assert close(torch._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5)[0], out)
    row = torch.tensor([[-torch.inf] * 2, [0.0, 0.0]])
    assert torch._safe_softmax(row, 1).tolist() == [[0, 0], [0.5, 0.5]]
    assert torch.native_dropout_backward(row[1], torch.tensor([True, False]), 2.0).tolist() == [0, 0]
    w = torch.ones(2, requires_grad=True)
    outputs = torch.native_layer_norm(torch.randn(3, 2), (2,), w, None, 1e-5)
    assert [o.requires_grad for o in outputs] == [True, False, False]
    given = tuple(torch.empty(0) for _ in range(3))
    torch.native_batch_norm(x, None, None, *running, True, 0.1, 1e-5, out=given)
    assert close(given[0], out)


def test_results_in_given_tensors_and_other_forms_of_arguments():
    a, given = torch.randn(4, 3), (torch.empty(0), torch.empty(0))
    torch.geqrf(a, out=given)
    assert close(given[0], torch.geqrf(a)[0]) and close(given[1], torch.geqrf(a)[1])
    weights, positions = torch.tensor([0.0, 1.0]), torch.empty(3, dtype=torch.int64)
    assert torch.multinomial(weights, 3, True, out=positions) is positions and positions.tolist() == [1] * 3
    with pytest.raises(RuntimeError, match="Long tensor"):
        torch.multinomial(weights, 3, True, out=torch.empty(3))
    grid = torch.zeros(1, 2, 2, 2, requires_grad=True)
    for mode, nearest in ((0, False), (1, True)):
        torch.grid_sampler_2d(torch.rand(1, 1, 3, 3), grid, mode, 0, True).sum().backward()
        assert not nearest or (grid.grad == 0).all()
        grid.grad = None
    image = torch.rand(1, 1, 8, 8)
    by_factors = torch._upsample_bilinear2d_aa(image, None, False, scale_factors=(0.5, 0.25))
    assert close(by_factors, F.interpolate(image, scale_factor=(0.5, 0.25), mode="bilinear", antialias=True))


def test_lu():
    a = torch.tensor([[0.0, 2.0], [3.0, 4.0]])
    found, pivots = torch.lu(a)
    p, lower, upper = torch.lu_unpack(found, pivots)
    assert close(p @ lower @ upper, a)
    assert a.lu(get_infos=True).info.item() == 0
    assert torch.lu(torch.zeros(2, 2), get_infos=True)[2].item() > 0
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.lu(torch.zeros(2, 2))


@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (2, 12, 6)])
def test_matrices_of_low_rank(shape):
    torch.manual_seed(0)
    a = torch.randn(*shape[:-1], 3, dtype=torch.float64) @ torch.randn(3, shape[-1], dtype=torch.float64)
    u, s, v = torch.svd_lowrank(a, 5)
    assert u.shape == (*shape[:-1], 5) and s.shape == (*shape[:-2], 5) and v.shape[-2:] == (shape[-1], 5)
    assert close(u @ torch.diag_embed(s) @ v.mT, a, 1e-9)
    assert close(s[..., :3], torch.linalg.svdvals(a)[..., :3], 1e-9)
    mean = a.mean(-2, keepdim=True)
    u, s, v = torch.pca_lowrank(a)
    assert close(u @ torch.diag_embed(s) @ v.mT, a - mean, 1e-9)
    assert close(torch.svd_lowrank(a, 5, M=mean)[1], torch.pca_lowrank(a, 5)[1], 1e-9)
    with pytest.raises(ValueError, match="expected q"):
        torch.pca_lowrank(a, 100)
    np.testing.assert_allclose((u.mT @ u)[..., 0, 0].numpy(), 1)


def test_control_flow():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    out = torch.cond(x.sum() > 2, lambda a: a * 3, lambda a: a, (x,))
    out.sum().backward()
    assert x.grad.tolist() == [3, 3] and torch.cond(False, lambda: 1, lambda: 2) == 2
    assert torch.while_loop(lambda n, y: n < 3, lambda n, y: (n + 1, y * 2), (torch.tensor(0), 1)) == (3, 8)
    f = torch.compile(lambda a: torch.cond(a.sum() > 0, torch.sin, torch.cos, (a,)))
    for value in (1.0, -1.0):
        a = torch.full((2,), value)
        assert torch.equal(f(a), a.sin() if value > 0 else a.cos())
    for call in (lambda: torch.cond(torch.ones(2) > 0, torch.sin, torch.cos, (x,)),
                 lambda: torch.cond("yes", torch.sin, torch.cos, (x,)),
                 lambda: torch.cond(True, 1, torch.cos),
                 lambda: torch.cond(True, torch.sin, torch.cos, x),
                 lambda: torch.while_loop(lambda a: True, lambda a: (a, a), (x,))):
        with pytest.raises(RuntimeError):
            call()


def test_modules_of_devices():
    assert torch.get_device_module("cpu") is torch.cpu is torch.get_device_module()
    with pytest.raises(RuntimeError, match="no module"):
        torch.get_device_module("meta")
    assert torch.Tag.pointwise.name == "pointwise"


def test_result_type_is_apart_from_sizes():
    assert torch.result_type(torch.ones(2, 3), torch.ones(4, dtype=torch.float64)) is torch.float64
    assert torch.result_type(torch.ones(3), torch.tensor(1.0, dtype=torch.float64)) is torch.float32
    assert torch.result_type(torch.ones(3, dtype=torch.int64), 1.5) is torch.float32
