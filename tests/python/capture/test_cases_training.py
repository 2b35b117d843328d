"""Gradients, hooks, buffers, autocast, random numbers and sizes, in kinds that compilers got wrong."""
import threading

import flambeau as torch
import pytest
from compilers import close, values
from flambeau import nn
from flambeau.nn import functional as F


# Second derivatives ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("power", [2, 3, 5, -1])
def test_second_derivative_of_a_power(compile_fn, power):
    x = torch.tensor([0.5, 1.5, -2.0], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(compile_fn(lambda x: (x**power).sum())(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    numbers = [0.5, 1.5, -2.0]
    assert close(values(first), [power * v ** (power - 1) for v in numbers])
    assert close(values(second), [power * (power - 1) * v ** (power - 2) for v in numbers])


@pytest.mark.parametrize(
    "penalty", [lambda m, x: (m(x) ** 2).sum(), lambda m, x: m(x).tanh().sum()], ids=["square", "tanh"]
)
def test_gradient_of_a_gradient_penalty(compile_fn, penalty):
    def train(function):
        m = nn.Linear(2, 2, bias=False).double()
        with torch.no_grad():
            m.weight.copy_(torch.tensor([[1.0, 2.0], [-1.0, 0.5]]))
        x = torch.tensor([[1.0, -1.0]], dtype=torch.float64, requires_grad=True)
        (g,) = torch.autograd.grad(function(lambda x: penalty(m, x))(x), x, create_graph=True)
        (g * g).sum().backward()
        return values(m.weight.grad)

    assert close(train(compile_fn), train(lambda f: f))


def test_second_backward_of_one_graph_is_refused(compile_fn):
    x = torch.ones(2, requires_grad=True)
    loss = compile_fn(lambda x: (x * x).exp().sum())(x)
    loss.backward()
    with pytest.raises(RuntimeError):
        loss.backward()


# Functions with derivatives of their own ------------------------------------------------------------------
class Blend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, weight):
        ctx.save_for_backward(a, b)
        ctx.weight = weight
        return a * b * weight

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b * ctx.weight, grad * a * ctx.weight * 10, None


class Bump(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 1
        y += 5
        y[0] = 0
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x + 1, x * 2

    @staticmethod
    def backward(ctx, first, second):
        return (0 if first is None else first) + (0 if second is None else second * 100)


def test_one_tensor_twice_into_a_function(compile_fn):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    compile_fn(lambda x: Blend.apply(x, x, 0.5).sum())(x).backward()
    assert values(x.grad) == [11, 16.5]


def test_a_view_and_its_base_into_a_function(compile_fn):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    compile_fn(lambda x: Blend.apply(x, x.flip(0), 1.0).sum())(x).backward()
    assert values(x.grad) == [3 + 30, 2 + 20]


def test_in_place_inside_a_function(compile_fn):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    out = compile_fn(lambda x: Bump.apply(x * 2))(x)
    out.sum().backward()
    assert values(out) == [0, 11] and values(x.grad) == [6, 6]


@pytest.mark.parametrize(
    "use, grad", [(lambda a, b: a.sum(), 1), (lambda a, b: b.sum(), 100), (lambda a, b: (a + b).sum(), 101)]
)
def test_a_result_that_is_not_used(compile_fn, use, grad):
    x = torch.ones(2, requires_grad=True)
    compile_fn(lambda x: use(*Two.apply(x)))(x).backward()
    assert values(x.grad) == [grad, grad]


# Hooks ----------------------------------------------------------------------------------------------------
class Triple(nn.Module):
    def forward(self, x):
        return x * 3


def add_forward_hook(m, log):
    return m.register_forward_hook(lambda m, args, out: log.append("forward") or out + 1)


def add_pre_hook(m, log):
    return m.register_forward_pre_hook(lambda m, args: log.append("pre") or (args[0] * 2,))


def add_backward_hook(m, log):
    return m.register_full_backward_hook(lambda m, given, got: log.append("backward") or (given[0] * 5,))


@pytest.mark.parametrize(
    "add, out, grad, seen",
    [
        (add_forward_hook, 4, 3, ["forward"]),
        (add_pre_hook, 6, 6, ["pre"]),
        (add_backward_hook, 3, 15, ["backward"]),
    ],
)
@pytest.mark.parametrize("inner", [False, True])
def test_hooks_come_and_go_between_calls(compile_fn, add, out, grad, seen, inner):
    module, log = Triple(), []
    compiled = compile_fn(nn.Sequential(module) if inner else module)

    def step():
        x = torch.ones(1, requires_grad=True)
        y = compiled(x)
        y.backward()
        return y.item(), x.grad.item()

    assert step() == (3, 3) and log == []
    handle = add(module, log)
    assert step() == (out, grad) and log == seen
    handle.remove()
    assert step() == (3, 3) and log == seen


def test_hook_on_a_parameter(compile_fn):
    m = nn.Linear(1, 1, bias=False)
    compiled, x = compile_fn(m), torch.ones(1, 1)
    compiled(x).sum().backward()
    m.weight.register_hook(lambda g: g * 7)
    m.weight.grad = None
    compiled(x).sum().backward()
    assert m.weight.grad.item() == 7


@pytest.mark.parametrize(
    "pack, unpack, grads",
    [
        (lambda t: t, lambda t: t + 1, [5, 4]),
        (lambda t: t * 3, lambda t: t, [12, 9]),
        (lambda t: t.tolist(), lambda t: torch.tensor(t), [4, 3]),
    ],
)
def test_hooks_on_what_is_saved(compile_fn, pack, unpack, grads):
    def run(a, b):
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return a * b

    a, b = torch.tensor([3.0], requires_grad=True), torch.tensor([4.0], requires_grad=True)
    compile_fn(run)(a, b).backward()
    assert [a.grad.item(), b.grad.item()] == grads


# Buffers --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("momentum", [None, 0.1, 0.5, 1.0])
def test_running_statistics(compile_fn, momentum):
    norm = nn.BatchNorm1d(1, momentum=momentum)
    compiled, mean, variance = compile_fn(norm), 0.0, 1.0
    for step, shift in enumerate((2.0, 4.0, 9.0), start=1):
        compiled(torch.tensor([[shift - 1], [shift + 1]]))
        weight = 1 / step if momentum is None else momentum
        mean, variance = mean + weight * (shift - mean), variance + weight * (2.0 - variance)
        assert close([norm.running_mean.item(), norm.running_var.item()], [mean, variance])
    assert norm.num_batches_tracked.item() == 3
    norm.eval()
    assert close(values(compiled(torch.tensor([[mean]]))), [[0.0]]) and norm.num_batches_tracked.item() == 3


def test_normalisation_without_statistics(compile_fn):
    norm = nn.BatchNorm1d(1, track_running_stats=False).eval()
    out = compile_fn(norm)(torch.tensor([[1.0], [3.0]]))
    assert close(values(out), [[-1.0], [1.0]], 1e-4) and norm.running_mean is None


@pytest.mark.parametrize("shape", [(3, 1, 1, 1), (1, 3)])
def test_batch_norm_with_a_weight_of_odd_shape(compile_fn, shape):
    x, zeros, ones = torch.arange(12.0).view(1, 3, 2, 2), torch.zeros(3), torch.ones(3)

    def attempt(function):
        try:
            return values(
                function(lambda x, w: F.batch_norm(x, zeros, ones, weight=w))(
                    x, torch.tensor([1.0, 2.0, 3.0]).view(shape)
                )
            )
        except RuntimeError:
            return "refused"

    assert attempt(compile_fn) == attempt(lambda f: f)


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps, self.total = 0, 0.0

    def forward(self, x):
        self.steps += 1
        self.total += 0.5
        return x * self.steps + self.total


def test_numbers_of_a_module_count_calls(compile_fn):
    model = Steps()
    compiled = compile_fn(model)
    assert [compiled(torch.ones(1)).item() for _ in range(12)] == [n + 0.5 * n for n in range(1, 13)]
    assert (model.steps, model.total) == (12, 6.0)


# Autocast -------------------------------------------------------------------------------------------------
def test_autocast_inside_and_off_again(compile_fn):
    def run(x, w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a = x @ w
            with torch.autocast("cpu", enabled=False):
                b = a.float() @ w
            c = b @ w
        return a, b, c, x @ w

    w = torch.eye(2).requires_grad_()
    out = compile_fn(run)(torch.full((1, 2), 3.0), w)
    assert [t.dtype for t in out] == [torch.bfloat16, torch.float32, torch.bfloat16, torch.float32]
    (out[1].sum() * 65536.0).backward()
    assert w.grad.dtype == torch.float32 and bool(torch.isfinite(w.grad).all())


@pytest.mark.parametrize("order", [(False, True, False), (True, False, True)])
def test_autocast_changes_between_calls(compile_fn, order):
    layer = nn.Linear(2, 2)
    compiled = compile_fn(lambda x: layer(x))
    for on in order:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=on):
            out = compiled(torch.ones(1, 2))
        assert out.dtype == (torch.bfloat16 if on else torch.float32)
        out.float().sum().backward()
    assert layer.weight.grad.dtype == torch.float32


# Random numbers -------------------------------------------------------------------------------------------
def two_dropouts(x):
    a = F.dropout(x, 0.5)
    b = F.dropout(x[:4], 0.5)
    return b.sum() + a.sum() * 0, F.dropout(a, 0.25), b


def noise_and_dropout(x):
    y = x + torch.randn_like(x)
    return F.dropout(y, 0.5), torch.rand(3), torch.randint(0, 5, (4,))


def on_branches(x):
    y = torch.rand(2)
    return (torch.rand(3), y) if x.shape[0] > 4 else y


@pytest.mark.parametrize("draw", [two_dropouts, noise_and_dropout, on_branches])
def test_numbers_are_drawn_in_order(compile_fn, draw):
    def seeded(function):
        torch.manual_seed(11)
        out = function(draw)(torch.ones(64))
        return values(list(out)), values(torch.rand(2))

    assert seeded(compile_fn) == seeded(lambda f: f)


@pytest.mark.parametrize(
    "draw, mean, deviation",
    [
        (lambda: torch.randn(20000), 0, 1),
        (lambda: torch.rand(20000), 0.5, 12**-0.5),
        (lambda: torch.empty(20000).exponential_(), 1, 1),
    ],
    ids=["randn", "rand", "exponential"],
)
def test_moments_of_random_numbers(compile_fn, draw, mean, deviation):
    torch.manual_seed(1)
    compiled = compile_fn(draw)
    x, again = compiled(), compiled()
    assert (
        abs(x.mean().item() - mean) < 0.05
        and abs(x.std().item() - deviation) < 0.05
        and not torch.equal(x, again)
    )


# Complex numbers ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "form, want",
    [
        (lambda x: x + x.conj(), [2, 6]),
        (lambda x: x * x.conj(), [5, 25]),
        (lambda x: x.conj().imag + x.imag, [0, 0]),
        (lambda x: torch.conj(x).clone() + x, [2, 6]),
        (lambda x: (x - x.conj()).abs(), [4, 8]),
    ],
)
def test_conjugates(compile_fn, form, want):
    assert values(compile_fn(form)(torch.tensor([1 + 2j, 3 - 4j]))) == want


@pytest.mark.parametrize(
    "view", [lambda x: x.transpose(0, 1), lambda x: x.flip(0), lambda x: x[:, ::2], lambda x: x + 0]
)
def test_complex_views(compile_fn, view):
    x = torch.arange(12.0).view(2, 3, 2)
    want = [[complex(a, b) for a, b in row] for row in values(view(x))]
    assert values(compile_fn(lambda x: torch.view_as_complex(view(x)))(x)) == want
    assert values(compile_fn(lambda x: torch.view_as_real(torch.view_as_complex(view(x)) * 1j))(x)) == [
        [[-c.imag, c.real] for c in row] for row in want
    ]


# Sizes ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dynamic", [None, True, False])
def test_sizes_from_nothing_to_many(compile_fn, dynamic):
    compiled = compile_fn(lambda x: (x * 2).sum() + x.shape[0], dynamic=dynamic)
    for n in (1, 2, 0, 3, 1, 7):
        assert compiled(torch.ones(n, 2)).item() == 5 * n


def test_sizes_of_two_arguments_that_become_equal(compile_fn):
    compiled = compile_fn(lambda a, b: (a.sum() if a.shape == b.shape else a.sum() - b.sum()))
    assert [
        compiled(torch.ones(m), torch.ones(n)).item() for m, n in ((2, 3), (4, 3), (3, 3), (5, 5), (5, 1))
    ] == [-1, 1, 3, 5, 4]


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_that_share_a_compiled_function(compile_fn, threads):
    compiled, wrong, start = compile_fn(lambda x, n: (x * n + 1).sum(-1)), [], threading.Barrier(threads)

    def work(first):
        start.wait()
        for n in range(first, 25, threads):
            x = torch.arange(2 * n, dtype=[torch.float32, torch.int64][n % 2]).view(2, n)
            got = values(compiled(x, n % 3))
            if got != values((x * (n % 3) + 1).sum(-1)):
                wrong.append((n, got))

    workers = [threading.Thread(target=work, args=(first,)) for first in range(1, threads + 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
