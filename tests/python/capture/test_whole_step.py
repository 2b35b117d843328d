"""Training steps compiled whole: backward(), clipping, the scaler and the optimizer in one graph."""
import copy

import pytest

import flambeau as torch
from flambeau import nn

pytestmark = pytest.mark.skipif(not torch._C._has_capture, reason="capture needs another version of CPython")

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1, betas=(0.8, 0.95)),
    "tensor rate": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.1)),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "adadelta": lambda p: torch.optim.Adadelta(p),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.1),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.1),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.1),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.1, t0=2),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.1),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.1),
    "groups": lambda p: torch.optim.SGD([{"params": p[:1]}, {"params": p[1:], "lr": 0.01}], lr=0.1),
}


class Training:
    """A small model with its optimizer, and ten batches."""

    def __init__(self, make_optimizer, dtype=torch.float32):
        torch.manual_seed(3)
        self.model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.BatchNorm1d(6), nn.Linear(6, 2)).to(dtype)
        self.optimizer = make_optimizer(list(self.model.parameters()))
        self.batches = [(torch.randn(5, 4, dtype=dtype), torch.randn(5, 2, dtype=dtype)) for _ in range(10)]

    def loss(self, x, y):
        return ((self.model(x) - y) ** 2).mean()

    def seen(self):
        """All that the step changes."""
        grads = [None if p.grad is None else p.grad.tolist() for p in self.model.parameters()]
        state = self.optimizer.state_dict()
        return ([v.tolist() for v in self.model.state_dict().values()], grads, state["param_groups"],
                {k: {n: v.tolist() for n, v in s.items()} for k, s in state["state"].items()})


def close(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(close(a[k], b[k]) for k in a)
    return a == b or (isinstance(a, float) and abs(a - b) <= 1e-6 * max(1, abs(b)))


def zero_first(t, x, y):
    t.optimizer.zero_grad()
    loss = t.loss(x, y)
    loss.backward()
    t.optimizer.step()
    return loss.detach()


def zero_last(t, x, y):
    loss = t.loss(x, y)
    loss.backward()
    t.optimizer.step()
    t.optimizer.zero_grad()
    return loss


def zeros(t, x, y):
    loss = t.loss(x, y)
    loss.backward()
    t.optimizer.step()
    t.optimizer.zero_grad(set_to_none=False)
    return loss.detach() * 1


def clipped(t, x, y):
    t.optimizer.zero_grad()
    loss = t.loss(x, y)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(t.model.parameters(), 0.5)
    nn.utils.clip_grad_value_(t.model.parameters(), 0.2)
    t.optimizer.step()
    return loss.detach(), norm


def two_batches(t, x, y):
    t.optimizer.zero_grad(set_to_none=True)
    for part in (slice(0, 2), slice(2, 5)):
        (t.loss(x[part], y[part]) / 2).backward()
    t.optimizer.step()
    return x.sum()


def through_grad(t, x, y):
    params = list(t.model.parameters())
    for p, g in zip(params, torch.autograd.grad(t.loss(x, y), params)):
        p.grad = g * 2
    t.optimizer.step()
    t.optimizer.zero_grad()
    return x.sum()


def with_closure(t, x, y):
    def closure():
        t.optimizer.zero_grad()
        loss = t.loss(x, y)
        loss.backward()
        return loss

    return t.optimizer.step(closure).detach()


STEPS = {f.__name__: f for f in (zero_first, zero_last, zeros, clipped, two_batches, with_closure)}


def train(step, training, count=5, between=lambda t, k: None):
    out = []
    for k, (x, y) in enumerate(training.batches[:count]):
        result = step(training, x, y)
        out.append([r.tolist() for r in (result if isinstance(result, tuple) else (result,))])
        between(training, k)
    return out, training.seen()


def check(step, make_optimizer, graphs, between=lambda t, k: None, count=5, **options):
    compiled = torch.compile(step, fullgraph=True)
    want = train(step, Training(make_optimizer, **options), count, between)
    got = train(compiled, Training(make_optimizer, **options), count, between)
    assert close(got, want)
    report = compiled.explain()
    assert len(report["graphs"]) <= graphs and not report["breaks"], report["text"]
    return report


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer(name):
    check(zero_first, OPTIMIZERS[name], graphs=2)  # the first step makes the state


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_every_order(name, step):
    check(step, OPTIMIZERS[name], graphs=2)


def test_gradients_that_are_set():
    want = train(through_grad, Training(OPTIMIZERS["adam"]))
    assert close(train(torch.compile(through_grad), Training(OPTIMIZERS["adam"])), want)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_dtypes(dtype):
    check(zero_first, OPTIMIZERS["adamw"], graphs=2, dtype=dtype)


def test_a_loaded_state_is_seen():
    saved = []

    def between(t, k):
        if k == 1:
            saved.append(copy.deepcopy(t.optimizer.state_dict()))
        if k == 3:
            t.optimizer.load_state_dict(saved.pop())

    check(zero_first, OPTIMIZERS["adam"], graphs=3, between=between)


def test_another_rate_and_a_frozen_parameter():
    def between(t, k):
        if k == 1:
            t.optimizer.param_groups[0]["lr"] = 0.01
        if k == 2:
            next(t.model.parameters()).requires_grad_(False)

    check(zero_first, OPTIMIZERS["adam"], graphs=5, between=between)


def test_a_new_group():
    def between(t, k):
        if k == 1:
            t.extra = nn.Parameter(torch.ones(2))
            t.optimizer.add_param_group({"params": [t.extra], "lr": 0.5})
            t.loss = lambda x, y: ((t.model(x) * t.extra - y) ** 2).mean()

    check(zero_first, OPTIMIZERS["sgd"], graphs=4, between=between)


def test_hooks_of_the_optimizer():
    count = [0]

    def hook(optimizer, args, options):
        count[0] += 1

    def between(t, k):
        if k == 1:
            t.optimizer.register_step_post_hook(hook)

    check(zero_first, OPTIMIZERS["momentum"], graphs=4, between=between)
    assert count == [6]  # three steps plainly, three compiled


def test_parameters_that_have_no_gradient():
    def step(t, x, y):
        t.optimizer.zero_grad()
        loss = ((t.model[0](x)) ** 2).mean()
        loss.backward()
        t.optimizer.step()
        return loss.detach()

    check(step, OPTIMIZERS["adam"], graphs=2)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_scaler(name):
    """Steps whose gradients are inf are left out, and the scale falls."""
    def run(compile_fn):
        t, scaler = Training(OPTIMIZERS[name]), torch.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=2)

        def step(x, y):
            t.optimizer.zero_grad()
            loss = t.loss(x, y)
            scaler.scale(loss).backward()
            scaler.unscale_(t.optimizer)
            nn.utils.clip_grad_norm_(t.model.parameters(), 1.0)
            scaler.step(t.optimizer)
            scaler.update()
            return loss.detach()

        compiled, out = compile_fn(step), []
        for k, (x, y) in enumerate(t.batches[:8]):
            x = x * float("inf") if k in (3, 4) else x
            out.append((str(compiled(x, y).tolist()), scaler.get_scale(), str(t.seen())))
        return out, compiled

    want, _ = run(lambda f: f)
    got, compiled = run(torch.compile)
    assert got == want or close(got, want)
    report = compiled.explain()
    assert len(report["breaks"]) <= (name != "sgd"), report["text"]  # where the first step makes state
    assert report["graphs"][-1]["runs"] >= 5, report["text"]


def test_reading_a_gradient_is_guarded():
    def f(p, x):
        return x + 1 if p.grad is None else x + p.grad

    compiled, p, x = torch.compile(f), torch.ones(2, requires_grad=True), torch.zeros(2)
    for grad in (None, [5.0, 5.0], [7.0, 8.0], None, [1.0, 2.0]):
        p.grad = None if grad is None else torch.tensor(grad)
        assert compiled(p, x).tolist() == f(p, x).tolist()
    assert len(compiled.explain()["graphs"]) == 2


def test_gradients_of_another_layout_or_memory():
    layer = nn.Linear(2, 2)

    def f(x):
        layer.weight.grad.mul_(2)
        return x * layer.weight.grad + x

    compiled = torch.compile(f)
    rows = [[1.0, 2.0], [3.0, 4.0]]
    for make in (lambda x: torch.tensor(rows), lambda x: torch.tensor(rows).t(), lambda x: x,
                 lambda x: torch.tensor(rows)):
        results = []
        for function in (f, compiled):
            x = torch.tensor(rows) * 3
            layer.weight.grad = make(x)
            results.append((function(x).tolist(), layer.weight.grad.tolist(), x.tolist()))
        assert results[0] == results[1]


def test_gradients_are_not_kept():
    import weakref

    layer = nn.Linear(2, 2)
    compiled = torch.compile(lambda x: (layer(x) ** 2).sum().backward())
    compiled(torch.ones(1, 2))
    compiled(torch.ones(1, 2))
    kept = weakref.ref(layer.weight.grad)
    layer.weight.grad = None
    assert kept() is None


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw", "nadam"])
def test_a_scheduler_makes_no_new_graphs(name):
    def run(compile_fn):
        t = Training(OPTIMIZERS[name])
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(t.optimizer, 20)
        step, out = compile_fn(zero_first), []
        for x, y in t.batches:
            out.append((step(t, x, y).item(), t.optimizer.param_groups[0]["lr"]))
            scheduler.step()
        return out, t.seen(), step

    want, seen, _ = run(lambda f: f)
    got, also_seen, compiled = run(lambda f: torch.compile(f, fullgraph=True))
    assert close(got, want) and close(also_seen, seen)
    report = compiled.explain()
    assert len(report["graphs"]) == 2, report["text"]  # the first step; all others
