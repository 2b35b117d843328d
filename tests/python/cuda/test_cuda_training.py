"""Training on a CUDA device: the numbers are the CPU's, to the bit where the stand-in computes as the CPU does."""
import copy
import os

import numpy as np
import pytest

import flambeau as fl
from flambeau import nn, optim

FAKE = "fake" in os.environ.get("FLAMBEAU_CUDA_DRIVER", "")


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 3)), fl.randn(5, 6)


def convolutions():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(16, 3)), fl.randn(5, 1, 4, 4)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.layer(x).mean(1))


def transformer():
    return Transformer(), fl.randn(5, 4, 8)


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-2),
    "adam": lambda p: optim.Adam(p, lr=1e-2),
    "adamw": lambda p: optim.AdamW(p, lr=1e-2),
    "adamw fused": lambda p: optim.AdamW(p, lr=1e-2, fused=True),
    "sgd foreach": lambda p: optim.SGD(p, lr=0.1, foreach=True, nesterov=True, momentum=0.9),
}


def train(device, make, optimizer, how="eager", mixed=False, steps=3):
    """Losses and parameters."""
    fl.manual_seed(3)
    model, x = make()
    target = fl.tensor([0, 1, 2, 0, 1])
    model, x, target = model.to(device), x.to(device), target.to(device)
    opt = OPTIMIZERS[optimizer](model.parameters())
    scaler = fl.amp.GradScaler(device, enabled=mixed)
    forward = fl.compile(model) if how == "compiled model" else model

    def step():
        opt.zero_grad()
        with fl.autocast(device, dtype=fl.bfloat16, enabled=mixed):
            loss = nn.functional.cross_entropy(forward(x), target)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        return loss.detach()

    if how == "compiled step":
        step = fl.compile(step)
    fl.manual_seed(11)
    losses = [step() for _ in range(steps)]
    for p in model.parameters():
        assert p.device.type == p.grad.device.type == device
    for state in opt.state.values():
        assert all(v.device.type == device for k, v in state.items() if isinstance(v, fl.Tensor) and k != "step")
    return [v.detach().cpu() for v in (*losses, *model.state_dict().values())]


def assert_same(there, here, tolerance=0.0 if FAKE else 2e-3):
    assert len(there) == len(here)
    if not FAKE:
        # Of parameters without influence (a bias before a normalisation) Adam's steps are the signs of rounding errors.
        there, here = there[:3], here[:3]
    for a, b in zip(there, here):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer):
    assert_same(train("cuda", mlp, optimizer), train("cpu", mlp, optimizer))


@pytest.mark.parametrize("how", ["eager", "compiled model", "compiled step"])
@pytest.mark.parametrize("make", [mlp, convolutions, transformer])
def test_models(make, how):
    assert_same(train("cuda", make, "adamw", how), train("cpu", make, "adamw"))


@pytest.mark.parametrize("how", ["eager", "compiled model", "compiled step"])
@pytest.mark.parametrize("make", [mlp, convolutions])
def test_mixed_precision(make, how):
    """Casts differ from the CPU's by their lists: compiled is compared with eager."""
    assert_same(train("cuda", make, "sgd", how, mixed=True), train("cuda", make, "sgd", mixed=True), 1e-2)


def test_float16_with_a_scaler_skips_steps_that_overflow():
    model = nn.Linear(4, 2).cuda()
    before = copy.deepcopy(model.state_dict())
    opt = optim.SGD(model.parameters(), lr=0.1)
    scaler = fl.amp.GradScaler(init_scale=2.0**30)
    with fl.autocast("cuda"):
        loss = (model(fl.ones(3, 4, device="cuda")) * 100).sum()
    assert loss.dtype is fl.float32
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    assert scaler.get_scale() == 2.0**29
    assert all(before[k].tolist() == v.tolist() for k, v in model.state_dict().items())


def test_state_goes_to_the_parameters_device():
    model = nn.Linear(2, 2)
    opt = optim.Adam(model.parameters())
    model(fl.ones(1, 2)).sum().backward()
    opt.step()
    state = copy.deepcopy(opt.state_dict())
    twin = copy.deepcopy(model).cuda()
    other = optim.Adam(twin.parameters())
    other.load_state_dict(state)
    twin.zero_grad()
    twin(fl.ones(1, 2, device="cuda")).sum().backward()
    other.step()
    assert all(s["exp_avg"].is_cuda for s in other.state.values())
    model.zero_grad()
    model(fl.ones(1, 2)).sum().backward()
    opt.step()
    assert_same([twin.weight.detach().cpu()], [model.weight.detach()])


def test_compiled_functions_over_two_kinds_of_devices():
    """Tensors of the CPU are brought to the device, and results that belong on the CPU come back."""
    def f(a, b):
        return (a.to("cuda") * 2 + b).cpu(), a + 1, b * 3

    a, b = fl.arange(6.0).reshape(2, 3), fl.ones(3, device="cuda")
    for got, expected in zip(fl.compile(f)(a, b), f(a, b), strict=True):
        assert got.device == expected.device and fl.equal(got, expected)
    changed = a.clone()
    assert fl.compile(lambda x: x.add_((b * 2).cpu()))(changed) is changed and fl.equal(changed, a + 2)


def test_modules_move():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    assert model.cuda() is model and all(v.is_cuda for v in model.state_dict().values())
    weight = model[0].weight
    model.to("cuda", fl.float64)
    assert model[0].weight is weight and weight.dtype is fl.float64 and model[1].num_batches_tracked.dtype is fl.int64
    model.cpu()
    assert not weight.is_cuda
    model.to(device=fl.device("cuda"), memory_format=fl.channels_last)
    assert weight.is_contiguous(memory_format=fl.channels_last)
    model.load_state_dict({k: v.cpu() for k, v in model.state_dict().items()})
    assert weight.is_cuda and model.to_empty(device="cpu")[0].weight.device.type == "cpu"
    with nn.utils.parametrize.cached():
        assert nn.utils.parameters_to_vector(model.cuda().parameters()).is_cuda
    assert nn.utils.clip_grad_norm_(model.parameters(), 1.0).item() == 0.0


def test_parameters_stay_the_same_objects_when_they_move():
    model = nn.Linear(2, 2)
    opt = optim.SGD(model.parameters(), lr=1.0)
    model(fl.ones(1, 2)).sum().backward()
    weight, bias = model.weight, model.bias.detach().clone()
    model.cuda()
    assert model.weight is weight and weight.is_cuda and weight.grad.is_cuda
    model.zero_grad()
    model(fl.ones(1, 2, device="cuda")).sum().backward()
    opt.step()
    assert fl.equal(model.bias.detach().cpu(), bias - 1)


def test_loaders_pin_batches():
    data = fl.utils.data.TensorDataset(fl.arange(6.0), fl.arange(6))
    for x, y in fl.utils.data.DataLoader(data, batch_size=2, pin_memory=True):
        assert x.is_pinned() and y.is_pinned()
        assert x.to("cuda", non_blocking=True).tolist() == x.tolist()
    pinned = fl.utils.data._utils.pin_memory.pin_memory({"a": [fl.ones(1), "text", 3], "b": (fl.ones(2),)})
    assert pinned["a"][0].is_pinned() and pinned["a"][1:] == ["text", 3] and pinned["b"][0].is_pinned()
    assert not any(x.is_pinned() for x, _ in fl.utils.data.DataLoader(data))


def test_loaders_pin_what_workers_make():
    data = fl.utils.data.TensorDataset(fl.arange(6.0))
    batches = [x for x, in fl.utils.data.DataLoader(data, batch_size=2, num_workers=1, pin_memory=True)]
    assert all(x.is_pinned() for x in batches) and fl.cat(batches).tolist() == [0, 1, 2, 3, 4, 5]


def test_saved_tensors_wait_on_the_cpu():
    x = fl.rand(3, device="cuda", requires_grad=True)
    with fl.autograd.graph.save_on_cpu(pin_memory=True):
        y = x.exp() * x
    y.sum().backward()
    z = x.detach().clone().requires_grad_()
    (z.exp() * z).sum().backward()
    assert x.grad.tolist() == z.grad.tolist()
