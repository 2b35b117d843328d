"""flambeau.func: derivatives as functions, and functions of batches."""
import math

import pytest

import flambeau as torch
from flambeau import func

X = torch.tensor([1.0, 2.0, 3.0])


def close(a, b):
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=a.dtype))
    return True


def cube(x):
    return (x**3).sum()


def test_a_gradient_is_a_plain_tensor():
    gradient = func.grad(cube)(X)
    assert gradient.tolist() == [3, 12, 27] and not gradient.requires_grad and X.grad is None


def test_a_gradient_keeps_the_history_of_what_else_it_depends_on():
    w = torch.tensor(3.0, requires_grad=True)
    func.grad(lambda x: (w * x**2).sum())(X).sum().backward()
    assert w.grad.item() == 12


def test_gradients_nest():
    assert func.grad(func.grad(lambda x: x**3))(torch.tensor(2.0)).item() == 12
    of_both = func.grad(lambda a: func.grad(lambda b: a * a * b**3)(torch.tensor(2.0)))
    assert of_both(torch.tensor(3.0)).item() == 72


def test_gradients_by_several_arguments_and_of_containers():
    (by_a, by_c), (value, aux) = func.grad_and_value(
        lambda a, b, c: ((a * b).sum() + c["k"].sum(), "more"), (0, 2), has_aux=True)(X, X + 1, {"k": X})
    assert by_a.tolist() == [2, 3, 4] and by_c["k"].tolist() == [1, 1, 1]
    assert value.item() == 26 and not value.requires_grad and aux == "more"


def test_gradients_under_no_grad():
    with torch.no_grad():
        assert func.grad(torch.sum)(X).tolist() == [1, 1, 1]


def test_vjp_and_jvp():
    output, pull = func.vjp(lambda x, y: (x * y, x.sum()), X, X + 1)
    assert output[0].tolist() == [2, 6, 12] and not output[0].requires_grad
    by_x, by_y = pull((X, torch.tensor(2.0)))
    assert by_x.tolist() == [4, 8, 14] and by_y.tolist() == [1, 4, 9]
    output, (along, none) = func.jvp(lambda x: (x.sin(), torch.ones(2)), (X,), (X,))
    assert close(along, X * X.cos()) and none.tolist() == [0, 0]
    output, derivative = func.linearize(torch.sin, X)
    assert close(derivative(X), X * X.cos())


def test_jacobians():
    def f(x, y):
        return {"product": x * y, "sum": x.sum()}

    found = func.jacrev(f, argnums=(0, 1))(X, X + 1)
    assert found["product"][0].tolist() == [[2, 0, 0], [0, 3, 0], [0, 0, 4]]
    assert found["sum"][0].tolist() == [1, 1, 1] and found["sum"][1].tolist() == [0, 0, 0]
    assert func.jacfwd(torch.sin)(torch.zeros(0)).shape == (0, 0)
    assert func.hessian(cube)(X).tolist() == [[6, 0, 0], [0, 12, 0], [0, 0, 18]]
    assert func.jacrev(lambda x: (x.sum(), "aux"), has_aux=True)(X)[1] == "aux"


@pytest.mark.parametrize("call, error", [
    (lambda: func.grad(lambda x: x)(X), RuntimeError), (lambda: func.grad(cube, argnums=2)(X), RuntimeError),
    (lambda: func.grad(lambda x: 1.0)(X), ValueError), (lambda: func.grad(cube)("text"), ValueError),
    (lambda: func.grad(cube, has_aux=True)(X), RuntimeError),
    (lambda: func.jvp(torch.sin, X, X), RuntimeError),
    (lambda: func.jvp(torch.sin, (X,), (X, X)), RuntimeError),
    (lambda: func.vjp(torch.sin, X)[1](torch.ones(2)), RuntimeError),
    (lambda: func.functionalize(cube, remove="all"), RuntimeError),
])
def test_errors_of_derivatives(call, error):
    with pytest.raises(error):
        call()


def test_vmap():
    a = torch.arange(6.0).reshape(2, 3)
    assert torch.vmap(torch.dot)(a, a).tolist() == [5, 50]
    columns, total = func.vmap(lambda x, y: (x * y, x.sum()), in_dims=(1, None), out_dims=(1, 0))(
        a, torch.tensor([1.0, 2.0]))
    assert columns.tolist() == [[0, 1, 2], [6, 8, 10]] and total.tolist() == [3, 5, 7]
    assert func.vmap(func.vmap(torch.mul))(a, a).tolist() == (a * a).tolist()
    named = func.vmap(lambda d, n: d["a"] * d["b"] + n, in_dims=({"a": 0, "b": None}, None))
    assert named({"a": X, "b": torch.tensor(2.0)}, 1).tolist() == [3, 5, 7]
    assert func.vmap(lambda x, *, k: x + k)(X, k=X).tolist() == [2, 4, 6]
    assert func.vmap(torch.sum)(torch.zeros(0, 3)).shape == (0,)
    assert func.vmap(lambda x: (x, X), out_dims=(0, None))(a)[1].tolist() == X.tolist()


def test_gradients_of_samples():
    w, data = X.clone(), torch.arange(6.0).reshape(2, 3)
    found = func.vmap(func.grad(lambda w, x: ((w * x).sum() - 1) ** 2), in_dims=(None, 0))(w, data)
    assert found.tolist() == [[2 * ((w * x).sum().item() - 1) * v for v in x.tolist()] for x in data]


def test_random_numbers_in_vmap():
    draw = lambda x: torch.rand(())  # noqa: E731
    assert func.vmap(draw, randomness="same")(X).unique().numel() == 1
    assert func.vmap(draw, randomness="different")(X).unique().numel() == 3
    with pytest.raises(RuntimeError, match="randomness"):
        func.vmap(draw)(X)


@pytest.mark.parametrize("call, error", [
    (lambda: func.vmap(torch.sum, in_dims=None)(X), ValueError), (lambda: func.vmap(torch.sum)(), ValueError),
    (lambda: func.vmap(torch.sum)(torch.tensor(1.0)), ValueError),
    (lambda: func.vmap(torch.add)(X, torch.ones(2)), ValueError),
    (lambda: func.vmap(lambda x: 1.0)(X), ValueError),
    (lambda: func.vmap(torch.add, in_dims=(0,))(X, X), ValueError),
    (lambda: func.vmap(torch.add)(X, 1), ValueError),
    (lambda: func.vmap(torch.sin, out_dims=(0, 1))(X), ValueError),
    (lambda: func.vmap(torch.sin, randomness="some"), RuntimeError),
])
def test_errors_of_vmap(call, error):
    with pytest.raises(error):
        call()


def test_modules_of_an_ensemble():
    torch.manual_seed(0)
    models = [torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).eval() for _ in range(3)]
    parameters, buffers = func.stack_module_state(models)
    weight = parameters["0.weight"]
    assert weight.shape == (3, 2, 3) and weight.requires_grad and weight.is_leaf
    assert buffers["1.running_mean"].shape == (3, 2)

    def run(p, b, x):
        return func.functional_call(models[0], (p, b), (x,))

    x = torch.randn(4, 3)
    assert close(func.vmap(run, in_dims=(0, 0, None))(parameters, buffers, x)[1], models[1](x))
    with pytest.raises(RuntimeError, match="one class"):
        func.stack_module_state([models[0], torch.nn.Linear(1, 1).eval()])
    with pytest.raises(RuntimeError, match="one mode"):
        func.stack_module_state([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1).eval()])
    func.replace_all_batch_norm_modules_(models[0])
    assert models[0][1].running_mean is None
    assert math.isclose(models[0](x).mean().item(), 0, abs_tol=1e-6)
