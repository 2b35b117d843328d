"""Compiled Python functions return what eager calls return."""
import os
import subprocess
import sys

import pytest

import flambeau as fl


def close(a, b):
    return (a - b).abs().max().item() < 1e-5


def test_values_and_gradients():
    def f(x, w):
        return fl.softmax(fl.tanh(x @ w) * 2, 1).sum(0)

    compiled = fl.compile(f)
    fl.manual_seed(0)
    for rows in (4, 6):
        x = fl.randn(rows, 3)
        w, v = fl.randn(3, 5, requires_grad=True), fl.randn(5)
        expected = f(x, w)
        (by_eager,) = fl.autograd.grad((expected * v).sum(), w)
        got = compiled(x, w)
        (by_compiled,) = fl.autograd.grad((got * v).sum(), w)
        assert close(got, expected) and close(by_compiled, by_eager)
    report = compiled.explain()
    assert report["calls"] == 2 and report["graphs"] and not report["fallbacks"], report["text"]


@pytest.mark.parametrize("backend", ["native", "interpreter", "aot_eager", "eager"])
def test_backends_and_results(backend):
    @fl.compile(backend=backend)
    def f(x):
        return x + 1, x * 2

    a, b = f(fl.ones(3))
    assert a.tolist() == [2, 2, 2] and b.tolist() == [2, 2, 2]
    assert f.__name__ == "f" and f.__wrapped__(fl.ones(1))[0].tolist() == [2]


def test_ranks_that_shrink():
    compiled = fl.compile(lambda x: x * 2)
    for shape in ((2, 3), (4, 5), (3,), (2, 2, 2), (), (0,), (1, 4)):
        assert compiled(fl.ones(shape)).tolist() == fl.full(shape, 2.0).tolist()


def test_errors_of_the_function():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fl.compile(f)(fl.ones(2))
    with pytest.raises(RuntimeError):
        fl.compile(lambda x: x + fl.ones(3))(fl.ones(2))
    assert fl.compile(lambda x: 3)(fl.ones(2)) == 3
    assert fl.compile(lambda x: x)(3) == 3
    with pytest.raises(TypeError, match="expected a function"):
        fl.compile(3)
    with pytest.raises(ValueError, match="no mode"):
        fl.compile(lambda x: x, mode="fast")
    with pytest.raises(ValueError, match="no backend"):
        fl.compile(lambda x: x, backend="none")


def test_reading_a_value():
    def f(x):
        return x * 2 if x.sum().item() > 0 else x - 1

    with pytest.raises(fl.UnsupportedError):
        fl.compile(f, fullgraph=True)(fl.ones(2))
    compiled = fl.compile(f)
    assert compiled(fl.ones(2)).tolist() == [2, 2] and compiled(-fl.ones(2)).tolist() == [-2, -2]
    assert compiled.explain()["fallbacks"]


def test_windows_of_an_image():
    """A sum over the last dimension of what is read through windows."""
    rows, window, width = 14, 7, 8

    def windows(x):
        x = x.view(2, rows // window, window, rows // window, window, width)
        return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window * window, width)

    def f(x, w):
        y = (windows(x) @ w).view(2, rows // window, rows // window, window, window, width)
        y = (x + y.permute(0, 1, 3, 2, 4, 5).reshape(2, rows, rows, width)).reshape(2, -1, width)
        return y + fl.nn.functional.layer_norm(y, (width,))

    fl.manual_seed(0)
    x, w = fl.randn(2, rows, rows, width, requires_grad=True), fl.randn(width, width, requires_grad=True)
    compiled = fl.compile(f, fullgraph=True)
    for got, expected in zip([compiled(x, w), *fl.autograd.grad(compiled(x, w).sin().sum(), (x, w))],
                             [f(x, w), *fl.autograd.grad(f(x, w).sin().sum(), (x, w))]):
        assert fl.equal(got, expected)


def test_a_step_with_backward_inside():
    """Forward, backward and clipping in one graph; the loss afterwards is as eager mode leaves it."""
    def run(compiled):
        fl.manual_seed(0)
        model = fl.nn.Sequential(fl.nn.Linear(8, 16), fl.nn.GELU(), fl.nn.BatchNorm1d(16),
                                 fl.nn.Linear(16, 1))
        optimizer = fl.optim.AdamW(model.parameters(), lr=0.01)

        def step(x):
            optimizer.zero_grad()
            loss = fl.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            loss.backward()
            fl.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        function = fl.compile(step) if compiled else step
        losses = [function(fl.randn(16, 8)) for _ in range(4)]
        assert all(loss.requires_grad and loss.grad_fn is not None for loss in losses)
        with pytest.raises(RuntimeError, match="second time"):
            losses[0].backward()
        if compiled:
            assert max(g["operators"] for g in function.explain()["graphs"]) > 50
        return [loss.item() for loss in losses], [p.tolist() for p in model.parameters()]

    assert run(True) == run(False)


@pytest.mark.skipif(not fl._C._has_capture, reason="capture needs another version of CPython")
def test_reset_stances_and_explanations():
    def f(x):
        y = x * 2
        print(end="")
        return y + 1

    compiled = fl.compile(f)
    assert compiled(fl.ones(2)).tolist() == [3, 3] and len(compiled.explain()["graphs"]) == 2
    fl.compiler.reset()
    assert not compiled.explain()["graphs"]
    with fl.compiler.set_stance("force_eager"):
        assert compiled(fl.ones(2)).tolist() == [3, 3]
    assert not compiled.explain()["graphs"]
    assert fl.compiler.set_stance("force_eager")(compiled)(fl.ones(1)).tolist() == [3]
    assert compiled(fl.ones(2)).tolist() == [3, 3] and len(compiled.explain()["graphs"]) == 2
    found = fl._dynamo.explain(f)(fl.ones(2))
    assert found.graph_count == 2 and found.graph_break_count == 1 and "print" in found.break_reasons[0]
    assert "test_compile.py" in found.break_reasons[0]


@pytest.mark.skipif(not fl._C._has_capture, reason="capture needs another version of CPython")
def test_messages_in_the_log():
    code = ("import flambeau as fl\ndef f(x, n):\n  print(end='')\n  return x * n\n"
            "c = fl.compile(f)\nc(fl.ones(2), 0.5)\nc(fl.ones(2), 1.5)\n")
    environment = {**os.environ, "TORCH_LOGS": "+graph_breaks,recompiles", "FLAMBEAU_TIMING": "1",
                   "FLAMBEAU_LOGS": "guards,graph_code"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "a call of print" in done.stderr and "line 3, in f" in done.stderr
    assert "captured again: n: it is 1.5, captured for 0.5" in done.stderr
    assert all(f"flambeau: {what}" in done.stderr for what in ("guards of f", "graph of f", "f: capture "))


def test_a_view_and_its_base_as_arguments():
    """One memory and one history: changed in place, it runs as it is, and nothing of a capture stays."""
    def f(y, v):
        v.mul_(3)
        return y

    def run(function):
        x = fl.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        y = x * 2
        result = function(y, y[1:3])
        (gradient,) = fl.autograd.grad(result.sum(), x)
        return result.tolist(), gradient.tolist(), y._version

    assert run(fl.compile(f)) == run(f)


def test_backward_after_the_compiled_function_is_gone():
    for factor in range(20):
        x = fl.ones(4, requires_grad=True)
        loss = fl.compile(lambda x, n=factor: (x * n).sum())(x)
        loss.backward()
        assert x.grad.tolist() == [factor] * 4
