"""Functions with a backward of one's own, hooks, nodes, and what is built on them."""
import gc
import subprocess
import sys
import weakref

import pytest

import flambeau as fl
from flambeau.autograd import Function, functional, gradcheck, gradgradcheck, graph


class Exp(Function):
    @staticmethod
    def forward(ctx, x, scale=1):
        y = x.exp() * scale
        ctx.scale = scale
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y, None


def test_function_and_its_node():
    x = fl.tensor([1.0, 2.0], requires_grad=True)
    y = Exp.apply(x, 3)
    assert type(y.grad_fn).__name__ == "ExpBackward" and y.grad_fn is y.grad_fn and y.grad_fn.scale == 3
    assert y.grad_fn.saved_tensors[0].tolist() == y.tolist()
    (node, number), = y.grad_fn.next_functions
    assert node.name() == "AccumulateGrad" and node.variable is x and number == 0
    (g,) = fl.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    assert fl.allclose(x.grad, y)


def test_setup_context_and_outputs_that_are_no_tensors():
    class Both(Function):
        @staticmethod
        def forward(a, b):
            return a * b, a + b, "text"

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, product, total, text):
            assert total is None and text is None
            a, b = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False)
            return product * b, None

    a, b = fl.ones(2, requires_grad=True), fl.full((2,), 3.0)
    product, _, text = Both.apply(a, b)
    product.sum().backward()
    assert text == "text" and a.grad.tolist() == [3, 3] and b.grad is None


def test_mark_dirty_and_non_differentiable():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            positive = x > 0
            ctx.mark_dirty(x)
            ctx.mark_non_differentiable(positive)
            return x, positive

        @staticmethod
        def backward(ctx, g, _):
            return g * 2

    leaf = fl.ones(2, requires_grad=True)
    x = leaf + 0
    y, positive = Double.apply(x)
    assert y is x and not positive.requires_grad
    y.sum().backward()
    assert leaf.grad.tolist() == [2, 2]


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        @fl.autograd.function.once_differentiable
        def backward(ctx, g):
            return g

    x = fl.ones(2, requires_grad=True)
    (g,) = fl.autograd.grad((Once.apply(x) * x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


@pytest.mark.parametrize("returned, message", [((1, 2), "incorrect number"), ("text", "expected Variable")])
def test_wrong_gradients(returned, message):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return (g, g) if returned == (1, 2) else returned

    with pytest.raises((RuntimeError, TypeError), match=message):
        Wrong.apply(fl.ones(1, requires_grad=True)).backward()


def test_errors_keep_their_type():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Fails.apply(fl.ones(1, requires_grad=True)).backward()
    with pytest.raises(RuntimeError, match="instantiated"):
        Fails()


def test_a_cycle_through_ctx_is_collected():
    class Holder:
        pass

    class Keeps(Function):
        @staticmethod
        def forward(ctx, x, holder):
            ctx.holder = holder
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g, None

    def make():
        holder = Holder()
        holder.y = Keeps.apply(fl.ones(1, requires_grad=True), holder)
        return weakref.ref(holder)

    seen = make()
    gc.collect()
    assert seen() is None


def test_hooks_run_in_order():
    calls = []
    x = fl.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: calls.append("tensor") or g * 2)
    y.grad_fn.register_prehook(lambda out: calls.append("before"))
    handle = y.grad_fn.register_hook(lambda into, out: calls.append(("after", out[0].tolist())))
    x.register_post_accumulate_grad_hook(lambda p: calls.append(("leaf", p.grad.tolist())))
    y.sum().backward(retain_graph=True)
    assert calls == ["tensor", "before", ("after", [2, 2]), ("leaf", [4, 4])]
    handle.remove()
    calls.clear()
    y.sum().backward()
    assert calls == ["tensor", "before", ("leaf", [8, 8])]


def test_multi_grad_hook_and_edges():
    a, b = fl.ones(1, requires_grad=True), fl.ones(1, requires_grad=True)
    seen = []
    with graph.register_multi_grad_hook([a, b], lambda grads: seen.append([g.item() for g in grads])):
        (a * 2 + b * 3).backward()
    assert seen == [[2, 3]]
    edge = graph.get_gradient_edge(a * 2)
    assert edge.node.name() == "MulBackward0" and edge.output_nr == 0 and isinstance(edge.node, graph.Node)


def test_saved_tensors_hooks():
    x = fl.tensor([1.0, 2.0], requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t.detach().numpy(), lambda a: fl.from_numpy(a)):
        y = x.exp() * x
    y.sum().backward()
    assert fl.allclose(x.grad, (x.exp() + x * x.exp()))
    with graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        with graph.save_on_cpu():
            pass


def test_hooks_that_are_never_left_end_with_the_interpreter():
    program = """
import flambeau as fl
fl.autograd.graph.save_on_cpu().__enter__()
x = fl.ones(3, requires_grad=True)
y = (x * x).sum()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def test_anomaly_names_the_operator():
    with fl.autograd.detect_anomaly(), pytest.warns(UserWarning, match="test_anomaly_names_the_operator"):
        with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan"):
            (fl.zeros(2, requires_grad=True).sqrt() * 0).sum().backward()


def test_grad_options():
    x, unused = fl.ones(2, 3, requires_grad=True), fl.ones(1, requires_grad=True)
    (batched,) = fl.autograd.grad(x * 2, x, fl.ones(4, 2, 3), is_grads_batched=True)
    assert batched.shape == (4, 2, 3) and batched.sum().item() == 48
    _, zeros = fl.autograd.grad((x * 2).sum(), [x, unused], materialize_grads=True)
    assert zeros.tolist() == [0]
    with pytest.raises(ValueError, match="allow_unused"):
        fl.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)


def test_functional():
    x = fl.tensor([1.0, 2.0])
    assert functional.jacobian(lambda t: t**2, x).tolist() == [[2, 0], [0, 4]]
    assert functional.hessian(lambda t: (t**3).sum(), x).tolist() == [[6, 0], [0, 12]]
    for product in (functional.vjp, functional.jvp):
        assert product(lambda t: t**2, x, fl.ones(2))[1].tolist() == [2, 4]
    for product in (functional.hvp, functional.vhp):
        assert product(lambda t: (t**3).sum(), x, fl.ones(2))[1].tolist() == [6, 12]
    a, b = functional.jacobian(lambda u, v: u * v, (x, x + 1))
    assert a.diagonal().tolist() == [2, 3] and b.diagonal().tolist() == [1, 2]


def test_gradcheck_finds_a_wrong_gradient():
    class Wrong(Exp):
        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] * 1.01, None

    x = fl.randn(3, dtype=fl.float64, requires_grad=True)
    z = fl.randn(2, dtype=fl.complex128).requires_grad_()
    assert gradcheck(Exp.apply, (x,)) and gradgradcheck(Exp.apply, (x,))
    assert gradcheck(lambda t: t * t.conj(), (z,))
    with pytest.raises(fl.autograd.GradcheckError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, (x,))
    assert not gradcheck(Wrong.apply, (x,), raise_exception=False)


def test_modes_decorate_generators():
    @fl.no_grad()
    def generate():
        yield fl.is_grad_enabled()
        yield fl.is_grad_enabled()

    assert [(inside, fl.is_grad_enabled()) for inside in generate()] == [(False, True)] * 2


def test_multi_grad_hooks_belong_to_a_pass():
    a, b = fl.tensor(2.0, requires_grad=True), fl.tensor(3.0, requires_grad=True)
    every, first = [], []
    with (graph.register_multi_grad_hook((a, b), every.append),
          graph.register_multi_grad_hook((a, b), lambda g: first.append(g.item()), mode="any")):
        (a * 4).backward()
        (b * 5).backward()
        (a * b).backward()
        fl.autograd.grad(a * b, a)
    (a * b).backward()
    assert [[None if g is None else g.item() for g in grads] for grads in every] == [
        [4, None], [None, 5], [3, 2], [3, None]]
    assert first[:2] == [4, 5] and len(first) == 4


class Undefined(Function):
    """Three outputs x. Where the gradient of the first alone is left out, backward doubles."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x.clone(), x.clone(), x.clone()

    @staticmethod
    def backward(ctx, *grads):
        total = sum(g for g in grads if g is not None)
        return total * 2 if [g is None for g in grads] == [True, False, False] else total


def test_gradcheck_finds_gradients_that_depend_on_what_is_left_out():
    x = fl.tensor(1.5, dtype=fl.float64, requires_grad=True)
    with pytest.raises(fl.autograd.GradcheckError, match="without a gradient for output 0"):
        gradcheck(Undefined.apply, (x,))
    assert gradcheck(Undefined.apply, (x,), check_undefined_grad=False)
    assert gradcheck(lambda x: (x * 2, x * 3), (x,), check_grad_dtypes=True)


def test_gradcheck_finds_passes_that_differ():
    passes = []

    class Drifts(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            passes.append(g)
            return g * (1 + 1e-6 * len(passes))

    x = fl.tensor(1.5, dtype=fl.float64, requires_grad=True)
    with pytest.raises(fl.autograd.GradcheckError, match="not reentrant"):
        gradcheck(Drifts.apply, (x,))
    assert gradcheck(Drifts.apply, (x,), nondet_tol=1e-3)
