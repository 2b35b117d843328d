"""Autocast and GradScaler on CUDA devices."""
import pytest

import flambeau as fl
from flambeau import amp


def halves(*sizes):
    return fl.rand(*sizes, device="cuda").half() + 0.5


def test_defaults_and_queries():
    assert not fl.is_autocast_enabled() and not fl.is_autocast_enabled("cuda")
    assert fl.get_autocast_dtype("cuda") is fl.get_autocast_gpu_dtype() is fl.float16
    with fl.autocast("cuda"):
        assert fl.is_autocast_enabled() and fl.is_autocast_enabled("cuda") and not fl.is_autocast_enabled("cpu")
        with fl.autocast("cuda", dtype=fl.bfloat16):
            assert fl.get_autocast_dtype("cuda") is fl.bfloat16
        with fl.autocast("cuda", enabled=False):
            assert not fl.is_autocast_enabled("cuda")
        assert fl.get_autocast_dtype("cuda") is fl.float16
    assert not fl.is_autocast_enabled("cuda")
    with fl.cuda.amp.autocast(dtype=fl.bfloat16):
        assert (fl.ones(2, 2, device="cuda") @ fl.ones(2, 2, device="cuda")).dtype is fl.bfloat16
    fl.set_autocast_enabled("cuda", True)
    fl.set_autocast_dtype("cuda", fl.bfloat16)
    try:
        assert fl.mm(fl.ones(2, 2, device="cuda"), fl.ones(2, 2, device="cuda")).dtype is fl.bfloat16
    finally:
        fl.set_autocast_enabled("cuda", False)
        fl.set_autocast_dtype("cuda", fl.float16)
    with pytest.raises(RuntimeError, match="float16, bfloat16 or float32"):
        fl.autocast("cuda", dtype=fl.int32)


def test_each_kind_of_device_has_its_own():
    here, there = fl.ones(2, 2), fl.ones(2, 2, device="cuda")
    with fl.autocast("cuda"):
        assert (here @ here).dtype is fl.float32 and (there @ there).dtype is fl.float16
        with fl.autocast("cpu"):
            assert (here @ here).dtype is fl.bfloat16 and (there @ there).dtype is fl.float16
    with fl.autocast("cpu"):
        assert (here @ here).dtype is fl.bfloat16 and (there @ there).dtype is fl.float32


F = fl.nn.functional
x32 = lambda *sizes: fl.rand(*sizes, device="cuda") + 0.5  # noqa: E731
LOWER = {
    "matmul": lambda: x32(2, 3) @ x32(3, 4), "mv": lambda: fl.mv(x32(2, 3), x32(3)),
    "bmm": lambda: fl.bmm(x32(1, 2, 3), x32(1, 3, 4)), "addmm": lambda: fl.addmm(x32(4), x32(2, 3), x32(3, 4)),
    "baddbmm": lambda: fl.baddbmm(x32(1, 2, 4), x32(1, 2, 3), x32(1, 3, 4)),
    "linear": lambda: F.linear(x32(2, 3), x32(4, 3), x32(4)), "prelu": lambda: F.prelu(x32(2, 3), x32(1)),
    "conv2d": lambda: F.conv2d(x32(1, 2, 4, 4), x32(3, 2, 2, 2)),
    "conv1d": lambda: F.conv1d(x32(1, 2, 4), x32(3, 2, 2)), "addr": lambda: fl.addr(x32(2, 3), x32(2), x32(3)),
    "einsum": lambda: fl.einsum("ij,jk->ik", x32(2, 3), x32(3, 4)),
    "multi_dot": lambda: fl.linalg.multi_dot([x32(2, 3), x32(3, 4), x32(4, 2)]),
    "attention": lambda: F.scaled_dot_product_attention(x32(1, 1, 2, 4), x32(1, 1, 2, 4), x32(1, 1, 2, 4)),
    "gru cell": lambda: fl.nn.GRUCell(3, 4).cuda()(x32(2, 3)), "lstm": lambda: fl.nn.LSTM(3, 4).cuda()(x32(2, 1, 3))[0],
}
FLOAT32 = {
    "exp": lambda: halves(3).exp(), "log": lambda: halves(3).log(), "pow": lambda: halves(3) ** 2,
    "square": lambda: halves(3).square(), "rsqrt": lambda: halves(3).rsqrt(), "softplus": lambda: F.softplus(halves(3)),
    "softmax": lambda: halves(2, 3).softmax(-1), "log_softmax": lambda: F.log_softmax(halves(2, 3), -1),
    "sum": lambda: halves(3).sum(), "sum over dims": lambda: halves(2, 3).sum((0, 1), keepdim=True),
    "prod": lambda: halves(3).prod(), "cumsum": lambda: halves(3).cumsum(0), "norm": lambda: halves(3).norm(),
    "vector_norm": lambda: fl.linalg.vector_norm(halves(3)), "logsumexp": lambda: halves(2, 3).logsumexp(1),
    "layer_norm": lambda: F.layer_norm(halves(2, 3), (3,)), "group_norm": lambda: F.group_norm(halves(2, 4, 3), 2),
    "mse_loss": lambda: F.mse_loss(halves(3), halves(3)), "cdist": lambda: fl.cdist(halves(2, 3), halves(2, 3)),
    "cross_entropy": lambda: F.cross_entropy(halves(2, 3), fl.tensor([0, 1], device="cuda")),
    "nll_loss": lambda: F.nll_loss(halves(2, 3), fl.tensor([0, 1], device="cuda")),
    "bce_with_logits": lambda: F.binary_cross_entropy_with_logits(halves(3), halves(3)),
    "interpolate": lambda: F.interpolate(halves(1, 1, 2, 2), scale_factor=2, mode="bilinear"),
}
AS_GIVEN = {
    "add": lambda: halves(3) + halves(3), "relu": lambda: halves(3).relu(), "gelu": lambda: F.gelu(halves(3)),
    "sigmoid": lambda: halves(3).sigmoid(), "tanh": lambda: halves(3).tanh(), "silu": lambda: F.silu(halves(3)),
    "mean": lambda: halves(3).mean(), "max_pool2d": lambda: F.max_pool2d(halves(1, 1, 4, 4), 2),
    "avg_pool2d": lambda: F.avg_pool2d(halves(1, 1, 4, 4), 2), "elu": lambda: F.elu(halves(3)),
    "selu": lambda: F.selu(halves(3)), "mish": lambda: F.mish(halves(3)), "logsigmoid": lambda: F.logsigmoid(halves(3)),
    "hardswish": lambda: F.hardswish(halves(3)), "var": lambda: halves(3).var(), "dropout": lambda: F.dropout(halves(3)),
    "batch_norm": lambda: fl.nn.BatchNorm1d(3).cuda()(halves(2, 3)), "in place": lambda: halves(3).exp_(),
    "sqrt": lambda: halves(3).sqrt(), "cat": lambda: fl.cat([halves(2), halves(2)]), "sin": lambda: halves(3).sin(),
    "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(halves(1, 1, 4, 4), 1), "glu": lambda: F.glu(halves(4)),
}


@pytest.mark.parametrize("name", LOWER)
def test_what_computes_in_float16(name):
    with fl.autocast("cuda"):
        assert LOWER[name]().dtype is fl.float16
    with fl.autocast("cuda", dtype=fl.bfloat16):
        assert LOWER[name]().dtype is fl.bfloat16


@pytest.mark.parametrize("name", FLOAT32)
def test_what_computes_in_float32(name):
    with fl.autocast("cuda"):
        assert FLOAT32[name]().dtype is fl.float32


@pytest.mark.parametrize("name", AS_GIVEN)
def test_what_keeps_its_dtype(name):
    with fl.autocast("cuda"):
        assert AS_GIVEN[name]().dtype is fl.float16


def test_what_takes_the_widest_dtype():
    with fl.autocast("cuda"):
        assert fl.dot(halves(3), x32(3)).dtype is fl.float32 and fl.dot(halves(3), halves(3)).dtype is fl.float16
        assert fl.atan2(halves(3), x32(3)).dtype is fl.float32
        assert fl.addcmul(halves(3), halves(3), x32(3)).dtype is fl.float32
        assert (x32(2, 2).double() @ x32(2, 2).double()).dtype is fl.float64
        assert halves(3).sum(dtype=fl.float16).dtype is fl.float16
        assert fl.ones(3, dtype=fl.int64, device="cuda").sum().dtype is fl.int64


def test_binary_cross_entropy_is_banned():
    with fl.autocast("cuda"):
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(halves(3), halves(3))
    assert F.binary_cross_entropy(x32(3) / 2, x32(3) / 2).dtype is fl.float32


def test_values_and_gradients_are_those_of_casts_by_hand():
    w = x32(3, 4).requires_grad_()
    x = x32(2, 3)
    with fl.autocast("cuda"):
        loss = F.mse_loss((x @ w).relu(), fl.ones(2, 4, device="cuda"))
    assert loss.dtype is fl.float32
    loss.backward()
    v = w.detach().clone().requires_grad_()
    F.mse_loss((x.half() @ v.half()).relu().float(), fl.ones(2, 4, device="cuda")).backward()
    assert w.grad.dtype is fl.float32 and w.grad.tolist() == v.grad.tolist()


def test_backward_inside_of_the_scope():
    w = x32(3, 3).requires_grad_()
    with fl.autocast("cuda"):
        y = F.gelu(x32(2, 3) @ w) ** 2
        y.sum().backward()
    assert w.grad.dtype is fl.float32


def test_compiled_functions_follow_the_mode():
    @fl.compile
    def f(x, w):
        return F.gelu(x @ w).exp()

    x, w = x32(2, 3), x32(3, 4)
    assert f(x, w).dtype is fl.float32
    expected = {}
    for dtype in (fl.float16, fl.bfloat16):
        with fl.autocast("cuda", dtype=dtype):
            expected[dtype] = F.gelu(x @ w).exp()
            got = f(x, w)
        assert got.dtype is fl.float32 and got.tolist() == expected[dtype].tolist()
    with fl.autocast("cpu"):  # another kind of device
        assert f(x, w).tolist() == F.gelu(x @ w).exp().tolist()
    assert expected[fl.float16].tolist() != expected[fl.bfloat16].tolist()


def test_compiled_functions_with_the_scope_inside():
    @fl.compile(fullgraph=True)
    def f(x, w):
        with fl.autocast("cuda"):
            y = x @ w
        with fl.autocast(device_type="cuda", dtype=fl.bfloat16):
            z = x @ w
        return y, z, x @ w

    y, z, plain = f(x32(2, 3), x32(3, 4))
    assert (y.dtype, z.dtype, plain.dtype) == (fl.float16, fl.bfloat16, fl.float32)
    assert not fl.is_autocast_enabled("cuda")


def test_custom_functions():
    class Double(fl.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cuda", cast_inputs=fl.float32)
        def forward(ctx, x):
            assert not fl.is_autocast_enabled("cuda")
            return x * 2

        @staticmethod
        @amp.custom_bwd(device_type="cuda")
        def backward(ctx, g):
            return g * 2

    x = halves(3).requires_grad_()
    with fl.autocast("cuda"):
        y = Double.apply(x)
    assert y.dtype is fl.float32
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def steps(scaler, bad_steps):
    """Parameters and scales after each step."""
    p = fl.ones(2, device="cuda", requires_grad=True)
    optimizer = fl.optim.SGD([p], lr=1.0)
    out = []
    for step in range(4):
        optimizer.zero_grad()
        scaler.scale((p * 0.25).sum()).backward()
        if step in bad_steps:
            p.grad[0] = float("inf")
        scaler.step(optimizer)
        scaler.update()
        out.append((p.tolist(), scaler.get_scale(), scaler._get_growth_tracker()))
    return out


def test_scaler():
    scaler = amp.GradScaler(init_scale=8.0, growth_interval=2)
    assert scaler.is_enabled() and scaler.get_scale() == 8.0
    assert steps(scaler, {2}) == [([0.75, 0.75], 8.0, 1), ([0.5, 0.5], 16.0, 0), ([0.5, 0.5], 8.0, 0),
                                  ([0.25, 0.25], 8.0, 1)]
    assert scaler._scale.is_cuda and scaler._growth_tracker.is_cuda
    state = scaler.state_dict()
    assert state == {"scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2,
                     "_growth_tracker": 1}
    other = fl.cuda.amp.GradScaler()
    other.load_state_dict(state)
    assert other.state_dict() == state and steps(other, ())[0][1] == 16.0


def test_scaler_on_the_device():
    p = fl.ones(3, device="cuda", requires_grad=True)
    q = fl.ones(2, requires_grad=True)
    optimizer = fl.optim.SGD([p, q], lr=1.0)
    scaler = amp.GradScaler(init_scale=4.0)
    scaled = scaler.scale([p.sum(), (q.sum(), p.sum())])
    assert isinstance(scaled, list) and isinstance(scaled[1], tuple) and not scaled[1][0].is_cuda
    assert scaled[0].item() == 12.0
    (scaled[0].cpu() + scaled[1][0]).backward()
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1, 1, 1] and q.grad.tolist() == [1, 1]
    found = scaler._found_inf_per_device(optimizer)
    assert {d.type: f.item() for d, f in found.items()} == {"cuda": 0.0, "cpu": 0.0}
    scaler.step(optimizer)
    scaler.update(new_scale=2.0)
    assert scaler.get_scale() == 2.0
    scaler.update(fl.tensor(3.0, device="cuda"))
    assert scaler.get_scale() == 3.0
    half = fl.ones(2, device="cuda", dtype=fl.float16, requires_grad=True)
    half.grad = fl.ones_like(half)
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(fl.optim.SGD([half], lr=1.0))
