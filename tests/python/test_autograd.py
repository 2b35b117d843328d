"""Gradients from Python."""
import pytest

import flambeau as fl


def test_backward_accumulates():
    x = fl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [4, 8, 12] and x.grad is x.grad
    x.grad = None
    assert x.grad is None and x.is_leaf and x.grad_fn is None
    y = x.exp()
    assert not y.is_leaf and y.grad_fn.name() == "ExpBackward0" and "grad_fn=<ExpBackward0>" in repr(y)
    y.backward(fl.ones(3))
    assert x.grad.tolist() == y.tolist()


def test_grad_of_grad():
    x = fl.tensor(2.0, requires_grad=True)
    (first,) = fl.autograd.grad(x**3, x, create_graph=True)
    (second,) = fl.autograd.grad(first, x)
    assert first.item() == pytest.approx(12) and second.item() == pytest.approx(12)
    with pytest.raises(RuntimeError):
        fl.autograd.grad(x * 2, fl.ones(1, requires_grad=True))
    assert fl.autograd.grad(x * 2, fl.ones(1, requires_grad=True), allow_unused=True) == (None,)


def test_modes():
    x = fl.ones(2, requires_grad=True)
    with fl.no_grad():
        assert not (x * 2).requires_grad
        with fl.enable_grad():
            assert (x * 2).requires_grad
        assert not fl.is_grad_enabled()
    assert fl.is_grad_enabled()

    @fl.no_grad()
    def f(t):
        return t * 2

    @fl.no_grad
    def g(t):
        return t * 2

    assert not f(x).requires_grad and not g(x).requires_grad and f.__name__ == "f"
    with pytest.raises(KeyError):
        with fl.no_grad():
            raise KeyError
    assert fl.is_grad_enabled()
    with fl.set_grad_enabled(False):
        assert not fl.is_grad_enabled()
    with fl.inference_mode():
        y = x * 2
        assert fl.is_inference_mode_enabled()
    assert not y.requires_grad and fl.is_grad_enabled() and not fl.is_inference_mode_enabled()


def test_hooks():
    x = fl.ones(2, requires_grad=True)
    y = x * 3
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert seen == [[1, 1]] and x.grad.tolist() == [30, 30]
    handle.remove()

    def fails(g):
        raise KeyError("from a hook")

    z = x * 2
    z.register_hook(fails)
    with pytest.raises(KeyError, match="from a hook"):
        z.sum().backward()


def test_errors():
    with pytest.raises(RuntimeError):
        fl.ones(2).sum().backward()
    with pytest.raises(RuntimeError):
        fl.ones(2, requires_grad=True).backward()
    x = fl.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        x.add_(1)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(RuntimeError):
        fl.arange(3).requires_grad_()


def test_gradient_through_indexing():
    x = fl.zeros(3, 3, requires_grad=True)
    (x[1] * 2 + x[:, 0] + x[fl.tensor([0, 0])].sum(0)).sum().backward()
    assert x.grad.tolist() == [[3, 2, 2], [3, 2, 2], [1, 0, 0]]
