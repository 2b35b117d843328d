"""Autocast and GradScaler."""
import pickle
import warnings

import pytest

import flambeau as fl
from flambeau import amp, optim


def test_products_are_cast_and_losses_are_not():
    x, w = fl.randn(4, 3), fl.randn(3, 5)
    with amp.autocast("cpu"):
        y = x @ w
        assert y.dtype is fl.bfloat16 and fl.mm(x, w).dtype is fl.bfloat16
        assert (x + 1).dtype is fl.float32 and y.exp().dtype is fl.bfloat16
        assert y.prod().dtype is fl.float32
        assert fl.cat([y, x[:, :1]], 1).dtype is fl.float32
        assert (x.double() @ w.double()).dtype is fl.float64
        with amp.autocast("cpu", enabled=False):
            assert (x @ w).dtype is fl.float32
        with amp.autocast("cpu", dtype=fl.float16):
            assert (x @ w).dtype is fl.float16
        assert (x @ w).dtype is fl.bfloat16
    assert (x @ w).dtype is fl.float32


def test_values_are_those_of_casting_by_hand():
    x, w = fl.randn(4, 3), fl.randn(3, 5)
    with amp.autocast("cpu"):
        got = x @ w
    assert got.tolist() == (x.bfloat16() @ w.bfloat16()).tolist()


def test_gradients_come_back_in_float32():
    x, w = fl.randn(4, 3), fl.randn(3, 5, requires_grad=True)
    with amp.autocast("cpu"):
        loss = ((x @ w) + (x @ w)).float().sum()
    loss.backward()
    assert w.grad.dtype is fl.float32
    half = w.detach().bfloat16().requires_grad_()
    ((x.bfloat16() @ half) + (x.bfloat16() @ half)).float().sum().backward()
    assert w.grad.tolist() == half.grad.float().tolist()


def test_parameters_are_cast_once_and_anew_in_the_next_scope():
    w = fl.ones(2, 2, requires_grad=True)
    x = fl.ones(2, 2)
    for value in (1.0, 3.0):
        with fl.no_grad():
            w.fill_(value)
        with amp.autocast("cpu"):
            assert (x @ w)[0, 0].item() == 2 * value


def test_decorator_and_queries():
    @amp.autocast("cpu", dtype=fl.bfloat16)
    def f(x):
        return x @ x, amp.autocast_mode.is_autocast_enabled("cpu")

    y, on = f(fl.ones(2, 2))
    assert y.dtype is fl.bfloat16 and on and not amp.autocast_mode.is_autocast_enabled("cpu")
    assert amp.autocast_mode.get_autocast_dtype("cpu") is fl.bfloat16
    assert amp.is_autocast_available("cpu") and not amp.is_autocast_available("toaster")


def test_compiled_functions_see_the_mode():
    f = fl.compile(lambda a, b: a @ b)
    x = fl.randn(4, 4)
    assert f(x, x).dtype is fl.float32
    with amp.autocast("cpu"):
        assert f(x, x).dtype is fl.bfloat16
    assert f(x, x).dtype is fl.float32


def test_errors_leave_the_mode_as_it_was():
    with amp.autocast("cpu"):
        with pytest.raises(RuntimeError):
            fl.ones(2, 3) @ fl.ones(2, 3)
        assert (fl.ones(2, 2) @ fl.ones(2, 2)).dtype is fl.bfloat16
    assert not amp.autocast_mode.is_autocast_enabled("cpu")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type"):
        amp.autocast("toaster")
    with pytest.warns(UserWarning, match="not supported"):
        with amp.autocast("cpu", dtype=fl.float32):
            assert (fl.ones(2, 2) @ fl.ones(2, 2)).dtype is fl.float32


def test_scaler():
    p = fl.ones(2, requires_grad=True)
    optimizer = optim.SGD([p], lr=1.0)
    scaler = amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    for expected_scale, bad in ((8.0, False), (16.0, False), (8.0, True), (8.0, False)):
        optimizer.zero_grad()
        scaler.scale((p * 0.25).sum()).backward()
        if bad:
            p.grad[0] = float("inf")
        before = p.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        assert (p.detach() - before).tolist() == ([0, 0] if bad else [-0.25, -0.25])
        assert scaler.get_scale() == expected_scale
    other = amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8.0 and other.state_dict() == scaler.state_dict()


def test_scaler_in_the_wrong_order():
    p = fl.ones(2, requires_grad=True)
    p.grad = fl.ones(2)
    optimizer = optim.SGD([p], lr=1.0)
    scaler = amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match="no scale yet"):
        scaler.update()
    scaler.scale(p.sum())
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)
    off = amp.GradScaler("cpu", enabled=False)
    assert off.scale(p) is p and off.get_scale() == 1.0 and off.state_dict() == {}
