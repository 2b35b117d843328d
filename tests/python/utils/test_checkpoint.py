"""checkpoint(): the same gradients, computed by a second run."""
import pytest

import flambeau as fl
from flambeau.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential


def gradients(function, *inputs, **options):
    leaves = [x.detach().requires_grad_() for x in inputs]
    fl.manual_seed(3)
    out = checkpoint(function, *leaves, **options) if options else function(*leaves)
    out.sum().backward()
    return [x.grad.tolist() for x in leaves], out.tolist()


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradients(use_reentrant):
    runs = []

    def f(x, w):
        runs.append(1)
        return ((x @ w).tanh() * fl.rand(4, 5)).exp()

    x, w = fl.randn(4, 3), fl.randn(3, 5)
    expected = gradients(f, x, w)
    assert len(runs) == 1
    assert gradients(f, x, w, use_reentrant=use_reentrant) == expected
    assert len(runs) == 3


def test_keywords_containers_and_a_second_backward():
    x = fl.randn(3, requires_grad=True)
    out = checkpoint(lambda d, scale: {"y": d["x"].sin() * scale}, {"x": x}, scale=2.0, use_reentrant=False)
    out["y"].sum().backward(retain_graph=True)
    first = x.grad.clone()
    out["y"].sum().backward()
    assert (x.grad == 2 * first).all() and (first == 2 * x.detach().cos()).all()


def test_random_numbers_go_on_where_they_were():
    x = fl.randn(3, requires_grad=True)
    fl.manual_seed(1)
    y = checkpoint(lambda x: x * fl.rand(3), x, use_reentrant=False)
    after = fl.get_rng_state()
    y.sum().backward()
    assert (fl.get_rng_state() == after).all()


def test_autocast_is_as_it_was():
    seen = []

    def f(x, w):
        seen.append((x @ w).dtype)
        return (x @ w).float().sin()

    x, w = fl.randn(2, 2, requires_grad=True), fl.randn(2, 2)
    with fl.amp.autocast("cpu"):
        y = checkpoint(f, x, w, use_reentrant=False)
    y.sum().backward()
    assert seen == [fl.bfloat16, fl.bfloat16]


def test_a_second_run_that_differs_is_an_error():
    sizes = iter([3, 4])

    def f(x):
        return (x * fl.ones(next(sizes), 1)).exp().sum()

    x = fl.randn(1, requires_grad=True)
    with pytest.raises(CheckpointError, match="different tensor"):
        checkpoint(f, x, use_reentrant=False).backward()


def test_errors_of_the_function_are_raised():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        checkpoint(f, fl.ones(1, requires_grad=True), use_reentrant=False)
    with pytest.raises(ValueError, match="Unexpected keyword"):
        checkpoint(lambda x, k: x, fl.ones(1), k=1, use_reentrant=True)
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(lambda x: x, fl.ones(1, requires_grad=True))


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_sequential(use_reentrant):
    functions = [fl.sin, fl.exp, fl.tanh, fl.cos, fl.sigmoid]
    x = fl.randn(4, requires_grad=True)
    checkpoint_sequential(functions, 2, x, use_reentrant=use_reentrant).sum().backward()
    y = x.detach().requires_grad_()
    out = y
    for f in functions:
        out = f(out)
    out.sum().backward()
    assert (x.grad == y.grad).all()
