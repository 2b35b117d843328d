"""Numbers and sizes that follow from elements: a part of the graph where nothing branches on them."""
import pytest

import flambeau as torch
from flambeau.nn import functional as F

pytestmark = pytest.mark.skipif(not torch._C._has_capture, reason="capture needs another version of CPython")


def shown(value):
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), value.stride(), str(value.tolist())
    if isinstance(value, (tuple, list)):
        return [shown(v) for v in value]
    return type(value), repr(value)


def check(f, inputs, graphs=1, breaks=0, **options):
    compiled = torch.compile(f, **options)
    for x in inputs:
        assert shown(compiled(x)) == shown(f(x)), x
    report = compiled.explain()
    assert (len(report["graphs"]), len(report["breaks"])) == (graphs, breaks), report["text"]
    return report


FLOATS = [[1.0, -2.0, 3.0], [0.5, 0.25, -0.75], [float("inf"), 1.0, 2.0], [-0.0, 0.0, 0.0]]
SYMBOLIC = {
    "product": lambda x: x * x.sum().item(),
    "float()": lambda x: x + float(x.max()) * 2,
    "tolist()": lambda x: x * x.mean().tolist() - 1,
    "of one element": lambda x: x[:1].item() + x,
    "given": lambda x: (x.sum().item(), x + x, x.max().item() * 2 - 1),
    "a sum of several": lambda x: x * sum([v.item() for v in (x.sum(), x.min(), x.max())]),
    "after a change": lambda x: (lambda y: (y.sum().item(), y.mul_(2), y.sum().item()))(x.clone()),
    "double": lambda x: x.double().sum().item() * x,
}


@pytest.mark.parametrize("f", SYMBOLIC.values(), ids=SYMBOLIC)
def test_floats_of_elements(f):
    check(f, [torch.tensor(values) for values in FLOATS], fullgraph=True)


def test_a_branch_on_a_float_ends_the_graph():
    def f(x):
        s = (x * 2).sum().item()
        return x + 1 if s > 3 else x - 1

    compiled = torch.compile(f)
    for values in FLOATS:
        assert shown(compiled(torch.tensor(values))) == shown(f(torch.tensor(values)))
    assert "branch" in compiled.explain()["breaks"][0]
    with pytest.raises(RuntimeError, match="branch"):
        torch.compile(f, fullgraph=True)(torch.ones(2))


def test_a_counter_of_losses():
    class Meter:
        total = 0.0

    def step(meter, x):
        loss = (x * x).sum()
        meter.total += loss.item()
        return loss * 2

    compiled, ours, plain = torch.compile(step, fullgraph=True), Meter(), Meter()
    for k in range(6):
        x = torch.full((3,), 0.1 * k)
        assert shown(compiled(ours, x)) == shown(step(plain, x))
        assert ours.total == plain.total and type(ours.total) is float
    assert len(compiled.explain()["graphs"]) <= 3


MASKS = [[1.0, -2.0, 3.0, 4.0], [1.0, 1.0, -1.0, -5.0], [5.0, 6.0, 7.0, 8.0]]
SIZES = {
    "mask": lambda x: x[x > 0] * 2,
    "masked_select": lambda x: torch.masked_select(x, x > 0).exp() + 1,
    "nonzero": lambda x: (x > 0).nonzero() + 1,
    "nonzero as a tuple": lambda x: torch.nonzero(x > 0, as_tuple=True)[0] * 3,
    "argwhere": lambda x: torch.argwhere(x > 0),
    "where of one argument": lambda x: torch.where(x > 0)[0] - 1,
    "sum": lambda x: x[x > 0].sum(),
    "two masks": lambda x: (x[x > 0] + 1, x[x < 7] * 2),
    "a mask of what a mask gave": lambda x: (lambda y: y[y < 100] + 1)(x[x > 0]),
    "back into place": lambda x: (lambda at: torch.zeros(4).index_add(0, at, x[at]))((x > 0).nonzero().squeeze(1)),
    "rows": lambda x: x.view(2, 2)[x.view(2, 2).sum(1) > -10].cos(),
    "unique": lambda x: torch.unique(x.round()),
    "the size itself": lambda x: (x[x > 0] * 2, x[x > 0].shape[0] + 1),
    "the size in the graph": lambda x: x[x > 0] / x[x > 0].shape[0],
    "in place": lambda x: x.clone().add_(x[x > 0].sum()),
    "a mean": lambda x: x[x > 0].mean(),
}


@pytest.mark.parametrize("f", SIZES.values(), ids=SIZES)
def test_sizes_of_elements(f):
    check(f, [torch.tensor(values) for values in MASKS], fullgraph=True)


@pytest.mark.parametrize("f", SIZES.values(), ids=SIZES)
def test_few_or_none(f):
    """Sizes of 0 and 1, which rules may tell from others."""
    compiled = torch.compile(f)
    for values in [MASKS[0], [-1.0, -2.0, -3.0, -4.0], [1.0, -1.0, -1.0, -1.0], MASKS[1]]:
        assert shown(compiled(torch.tensor(values))) == shown(f(torch.tensor(values)))


def test_gradients_through_a_mask():
    def f(x):
        return (x[x > 0] ** 2).sum() + x.sum()

    compiled = torch.compile(f, fullgraph=True)
    for values in MASKS:
        grads = []
        for function in (f, compiled):
            x = torch.tensor(values, requires_grad=True)
            function(x).backward()
            grads.append(x.grad.tolist())
        assert grads[0] == grads[1]


def test_random_numbers_after_a_size_that_is_not_as_expected():
    """Where the run turns to plain Python, random numbers are those of one run."""
    def f(x):
        noise = torch.rand(4)
        kept = x[x > 0]
        return noise, kept[0] if kept.shape[0] != 0 else kept, torch.rand(2)

    compiled = torch.compile(f)
    for values in (MASKS[0], [-1.0] * 4, MASKS[1]):
        results = []
        for function in (f, compiled):
            torch.manual_seed(4)
            results.append((shown(function(torch.tensor(values))), torch.rand(1).item()))
        assert results[0] == results[1]


def test_an_argument_that_changes_is_untouched_where_a_run_fails():
    def f(x, y):
        y.add_(1)
        kept = x[x > 0]
        if kept.numel() == 0:
            return y * 2
        y.mul_(kept.sum())
        return kept

    compiled = torch.compile(f)
    for values in (MASKS[0], [-1.0] * 4, MASKS[1], [-2.0] * 4):
        results = []
        for function in (f, compiled):
            y = torch.ones(2)
            results.append((shown(function(torch.tensor(values), y)), y.tolist()))
        assert results[0] == results[1]


def test_loss_over_what_is_labelled():
    def f(logits):
        labels = torch.tensor([0, -100, 2, 1])
        keep = labels != -100
        return F.cross_entropy(logits[keep], labels[keep])

    logits = torch.randn(4, 3)
    compiled = torch.compile(f)
    assert abs(compiled(logits).item() - f(logits).item()) < 1e-6


@pytest.mark.parametrize("f", [
    lambda x: torch.arange(int(x.abs().sum().item())) * 2,
    lambda x: [x] * x[x > 0].shape[0],
    lambda x: x.repeat_interleave((x > 0).long() + 1),
    lambda x: x[: (x > 0).sum().item()] + 1,
    lambda x: torch.bincount((x > 0).long()) + 1,
], ids=["arange", "list", "repeat_interleave", "slice", "bincount"])
def test_what_is_not_captured_is_right(f):
    compiled = torch.compile(f)
    for values in MASKS:
        assert shown(compiled(torch.tensor(values))) == shown(f(torch.tensor(values)))
