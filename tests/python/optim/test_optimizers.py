"""Every optimizer against PyTorch's results; groups, state and hooks."""
import json
from pathlib import Path

import numpy as np
import pytest

import flambeau as fl
from flambeau import optim

from optim_cases import OPTIMIZERS, PARAMETERS, STEPS, case_name, gradient

EXPECTED = json.loads((Path(__file__).parent / "expected.json").read_text())["optimizers"]


def parameters(dtype=fl.float64):
    return [fl.tensor(v, dtype=dtype).requires_grad_() for v in PARAMETERS]


def run(optimizer, params, steps, start=0):
    for step in range(start, start + steps):
        for i, p in enumerate(params):
            p.grad = fl.tensor(gradient(i, step), dtype=p.dtype)
        optimizer.step()


@pytest.mark.parametrize("name, kwargs", OPTIMIZERS, ids=[case_name(*c) for c in OPTIMIZERS])
def test_steps(name, kwargs):
    params = parameters()
    run(getattr(optim, name)(params, **kwargs), params, STEPS)
    for p, expected in zip(params, EXPECTED[case_name(name, kwargs)]):
        np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("name, kwargs", OPTIMIZERS, ids=[case_name(*c) for c in OPTIMIZERS])
def test_state_goes_on(name, kwargs):
    params = parameters()
    first = getattr(optim, name)(params, **kwargs)
    run(first, params, 3)
    second = getattr(optim, name)(params, **kwargs)
    second.load_state_dict(first.state_dict())
    run(second, params, STEPS - 3, 3)
    for p, expected in zip(params, EXPECTED[case_name(name, kwargs)]):
        np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adamax", "ASGD"])
def test_a_differentiable_step_has_a_gradient(name):
    start = [p.detach() for p in parameters()]
    leaves = [p.clone().requires_grad_() for p in start]
    params = [p.clone() for p in leaves]
    optimizer = getattr(optim, name)(params, lr=0.1, weight_decay=0.2, differentiable=True)
    run(optimizer, params, 1)
    plain = [p.clone().requires_grad_() for p in start]
    run(getattr(optim, name)(plain, lr=0.1, weight_decay=0.2), plain, 1)
    for p, q in zip(params, plain):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-12)
    sum(p.sum() for p in params).backward()
    assert all(p.grad is not None and (p.grad != 0).any() for p in leaves)


def test_lbfgs_maximizes_and_keeps_a_tensor_rate():
    x, rate = fl.tensor([3.0, -2.0], dtype=fl.float64, requires_grad=True), fl.tensor(0.5)
    optimizer = optim.LBFGS([x], lr=rate, max_iter=40, maximize=True)

    def closure():
        optimizer.zero_grad()
        height = -(x * x * fl.tensor([1.0, 10.0], dtype=fl.float64)).sum()
        height.backward()
        return height

    optimizer.step(closure)
    state = optimizer.state[x]
    assert state["t"] is rate and len(state["old_dirs"]) > 2
    np.testing.assert_allclose(x.detach().numpy(), 0, atol=1e-3)


def test_lbfgs_takes_no_curvature_that_is_not_a_number():
    x = fl.tensor([1e100, 2.0], dtype=fl.float64, requires_grad=True)
    optimizer = optim.LBFGS([x], maximize=True)

    def closure():
        optimizer.zero_grad()
        height = (x**4).sum()  # without a bound: the gradient overflows
        height.backward()
        return height

    for _ in range(3):
        height = optimizer.step(closure)
    state = optimizer.state[x]
    assert height.item() == float("inf") and state["old_dirs"] == [] and state["H_diag"] == 1


def test_lbfgs_finds_the_minimum():
    for search in (None, "strong_wolfe"):
        x = fl.tensor([-1.2, 1.0], dtype=fl.float64, requires_grad=True)
        optimizer = optim.LBFGS([x], lr=1 if search else 0.1, max_iter=300, line_search_fn=search)

        def closure():
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            return loss

        first = optimizer.step(closure)
        assert first.item() == pytest.approx(24.2)
        if search:
            np.testing.assert_allclose(x.detach().numpy(), [1, 1], atol=1e-4)
            assert optimizer.state[x]["func_evals"] < 60
        assert closure().item() < 5


def test_groups_have_options_of_their_own():
    a, b = parameters()
    optimizer = optim.SGD([{"params": a}, {"params": [b], "lr": 1.0}], lr=0.5)
    assert [g["lr"] for g in optimizer.param_groups] == [0.5, 1.0]
    c = fl.ones(2).requires_grad_()
    optimizer.add_param_group({"params": c, "momentum": 0.9})
    for p in (a, b, c):
        p.grad = fl.ones_like(p)
    before = [p.detach().clone() for p in (a, b, c)]
    optimizer.step()
    assert [(q - p).flatten()[0].item() for p, q in zip((a, b, c), before)] == [0.5, 1.0, 0.5]
    assert "momentum_buffer" in optimizer.state[c] and a not in optimizer.state


def test_parameters_without_gradient_are_left_alone():
    a, b = parameters()
    a.grad = fl.ones_like(a)
    optimizer = optim.Adam([a, b])
    optimizer.step()
    assert b not in optimizer.state and b.tolist() == PARAMETERS[1]
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [[0.0] * 3] * 2
    optimizer.zero_grad()
    assert a.grad is None


def kernels_of(optimizer):
    return [kernel for kernels in optimizer._kernels.values() for kernel in kernels.values()]


def test_a_schedule_of_options_makes_no_new_kernels():
    a = fl.ones(3).requires_grad_()
    optimizer = optim.SGD([a], lr=0.1, momentum=0.9)
    for step in range(6):
        a.grad = fl.ones(3)
        optimizer.param_groups[0]["momentum"] = 0.9 - step / 100
        optimizer.param_groups[0]["lr"] = 0.1 + step / 100
        optimizer.step()
    assert len(kernels_of(optimizer)) == 2  # without and with a buffer


@pytest.mark.parametrize("name, kwargs", OPTIMIZERS, ids=[case_name(*c) for c in OPTIMIZERS])
def test_a_step_is_one_kernel(name, kwargs):
    params = parameters()
    optimizer = getattr(optim, name)(params, **kwargs)
    run(optimizer, params, 3)
    assert kernels_of(optimizer)
    for kernel in kernels_of(optimizer):
        seen = kernel._run.explain()
        assert seen["fallbacks"] == [] and len(seen["graphs"]) <= 2  # one for each number of rows or columns
        if name not in ("Adafactor", "Muon"):  # these have sums and products
            assert [g["kernels"] for g in seen["graphs"]] == [1]


def test_names_of_parameters():
    a, b = parameters()
    optimizer = optim.SGD([("a", a), ("b", b)])
    assert optimizer.param_groups[0]["param_names"] == ["a", "b"]
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [fl.ones(1).requires_grad_()]})


def test_state_dict_is_numbered_and_typed():
    params = parameters(fl.float32)
    optimizer = optim.Adam(params, lr=0.1)
    run(optimizer, params, 1)
    state = optimizer.state_dict()
    assert list(state["state"]) == [0, 1] and state["param_groups"][0]["params"] == [0, 1]
    assert state["state"][1]["step"].item() == 1
    half = [p.detach().half().requires_grad_() for p in params]
    other = optim.Adam(half, lr=0.5)
    other.load_state_dict(state)
    assert other.param_groups[0]["lr"] == 0.1
    assert (other.state[half[0]]["exp_avg"].dtype is fl.float16
            and other.state[half[0]]["step"].dtype is fl.float32)
    with pytest.raises(ValueError, match="different number of param groups"):
        optim.Adam([{"params": p} for p in params]).load_state_dict(state)
    with pytest.raises(ValueError, match="size of optimizer's group"):
        optim.Adam(params[:1]).load_state_dict(state)


def test_hooks():
    a = fl.ones(1).requires_grad_()
    a.grad = fl.ones(1)
    optimizer, seen = optim.SGD([a], lr=1.0), []
    handles = [optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before")),
               optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after")),
               optim.optimizer.register_optimizer_step_post_hook(lambda *args: seen.append("all"))]
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: {k: v for k, v in state.items()
                                                                  if k != "more"})
    optimizer.step()
    assert seen == ["before", "after", "all"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 3
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)


def test_own_optimizers_are_small():
    class Fixed(optim.Optimizer):
        def __init__(self, params, lr=optim.optimizer.required):
            super().__init__(params, dict(lr=lr))

        @fl.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    a = fl.ones(1).requires_grad_()
    a.grad = fl.ones(1)
    with pytest.raises(ValueError, match="required optimization option lr"):
        Fixed([a])
    optimizer, seen = Fixed([a], lr=0.25), []
    optimizer.register_step_post_hook(lambda *args: seen.append(1))
    optimizer.step()
    assert a.item() == 0.75 and seen == [1]
    assert repr(optimizer) == "Fixed (\nParameter Group 0\n    lr: 0.25\n)"


@pytest.mark.parametrize("make, error, message", [
    (lambda p: optim.SGD(p), TypeError, "iterable of Tensors or of dicts"),
    (lambda p: optim.SGD([]), ValueError, "empty parameter list"),
    (lambda p: optim.SGD([1.0]), TypeError, "must be Tensors"),
    (lambda p: optim.SGD([p * 2]), ValueError, "non-leaf"),
    (lambda p: optim.SGD([{"params": p}, {"params": [p]}]), ValueError, "more than one parameter group"),
    (lambda p: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
    (lambda p: optim.SGD([p], nesterov=True), ValueError, "Nesterov"),
    (lambda p: optim.Adam([p], betas=(1.0, 0.5)), ValueError, "beta parameter at index 0: 1.0"),
    (lambda p: optim.Adam([p], eps=-1), ValueError, "epsilon value: -1"),
    (lambda p: optim.Muon([p]), ValueError, "matrices"),
    (lambda p: optim.LBFGS([{"params": p}, {"params": fl.ones(1).requires_grad_()}]), ValueError, "parameter "
                                                                                                  "groups"),
    (lambda p: optim.Adafactor([p], d=0.5), ValueError, "threshold d"),
])
def test_refuses(make, error, message):
    with pytest.raises(error, match=message):
        make(fl.ones(3).requires_grad_())


def test_warns_of_a_parameter_named_twice():
    p = fl.ones(3).requires_grad_()
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([p, p])


def test_sparse_adam_refuses_dense_gradients():
    p = fl.ones(3).requires_grad_()
    p.grad = fl.ones(3)
    with pytest.raises(RuntimeError, match="dense gradients"):
        optim.SparseAdam([p]).step()
