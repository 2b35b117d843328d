"""Nothing is left behind: no warnings in development mode, no memory, and no traces of one thread in another."""
import gc
import subprocess
import sys
import threading

import pytest

import flambeau as fl
from flambeau.autograd import Function, forward_ad

TRAINING = """
import io
import flambeau as torch
from flambeau import nn
from flambeau.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(8, 4, sparse=True), nn.Flatten(), nn.Linear(8, 3), nn.BatchNorm1d(3))
tables, others = [model[0].weight], [*model[2].parameters(), *model[3].parameters()]
optimizers = [torch.optim.SparseAdam(tables), torch.optim.AdamW(others)]
data = DataLoader(TensorDataset(torch.randint(8, (16, 2)), torch.randint(3, (16,))), 4, num_workers=1)
for forward in (model, torch.compile(model)):
    for x, y in data:
        loss = nn.functional.cross_entropy(forward(x), y)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
file = io.BytesIO()
torch.save(model.state_dict(), file)
file.seek(0)
model.load_state_dict(torch.load(file))
print(torch.func.jvp(torch.sin, (torch.ones(2),), (torch.ones(2),)))
"""


def test_development_mode_has_nothing_to_say():
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", TRAINING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


ONES, LEAF, TABLE = fl.ones(4), fl.ones(4, requires_grad=True), fl.nn.Embedding(8, 4, sparse=True)


def eager():
    c = ONES * ONES + 1
    c[0] = c.view(2, 2)[1, 1]
    return c.sum().item(), fl.max(c, 0)


def backward():
    y = Double.apply(LEAF) * LEAF
    y.register_hook(lambda g: None)
    y.sum().backward()
    TABLE(fl.tensor([1, 2])).sum().backward()
    LEAF.grad = TABLE.weight.grad = None


def construction():
    fl.nn.Sequential(fl.nn.Linear(2, 2), fl.nn.ReLU()).state_dict()


def forward_mode():
    with forward_ad.dual_level():
        forward_ad.unpack_dual(forward_ad.make_dual(ONES, ONES) * 2)


def errors():
    with pytest.raises(TypeError):
        fl.add(ONES, "x")
    with pytest.raises(RuntimeError):
        ONES @ fl.ones(3)


def pages():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("call", [eager, backward, construction, forward_mode, errors])
def test_calls_leave_no_memory_behind(call):
    """A tensor left by each call would be 2000 of them, 64 pages at least."""
    for _ in range(1000):
        call()
    before = pages()
    for _ in range(2000):
        call()
    assert pages() - before < 64


def train(seed, losses):
    generator = fl.Generator().manual_seed(seed)
    x = fl.randn(16, 8, generator=generator)
    model = fl.nn.Sequential(fl.nn.Linear(8, 8), fl.nn.Tanh(), fl.nn.Linear(8, 1))
    with fl.no_grad():
        for p in model.parameters():
            p.copy_(fl.randn(p.shape, generator=generator) * 0.3)
    optimizer = fl.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(20):
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        losses[seed].append(loss.item())


def test_eight_threads_train_as_one_after_the_other():
    alone, together = ([[] for _ in range(8)] for _ in range(2))
    for seed in range(8):
        train(seed, alone)
    threads = [threading.Thread(target=train, args=(seed, together)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone and all(losses[-1] < losses[0] for losses in alone)
