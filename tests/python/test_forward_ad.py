"""Forward mode gives the derivatives that differences give, for every kind of call."""
import pytest

import flambeau as fl
from flambeau.autograd import Function, forward_ad, functional, gradcheck
from flambeau.autograd.forward_ad import dual_level, make_dual, unpack_dual

X, V = fl.tensor([1.0, 2.0], dtype=fl.float64), fl.tensor([1.0, 10.0], dtype=fl.float64)


def difference(f, x=X, v=V, step=1e-6):
    return (f(x + step * v) - f(x - step * v)) / (2 * step)


def joined(x):
    out = fl.zeros(3, 2, dtype=x.dtype)
    out[1] = x.exp()
    out[0, 0] = x[1] * 2
    out[1:].mul_(x)
    return out


@pytest.mark.parametrize("f", [
    lambda x: x.sin() * x, lambda x: x.softmax(0), lambda x: x.sort(descending=True)[0], joined,
    lambda x: (x.outer(x) @ x).cumsum(0), lambda x: fl.stack([x, x.flip(0)]).std(1),
    lambda x: fl.nn.functional.layer_norm(x, (2,)),
    lambda x: fl.linalg.inv(x.outer(x) + fl.eye(2, dtype=x.dtype)),
    lambda x: x.clamp(max=1.5), lambda x: fl.complex(x, x * x).abs()])
def test_tangents(f):
    with dual_level():
        primal, tangent = unpack_dual(f(make_dual(X, V)))
    assert not primal.requires_grad and not tangent.requires_grad
    assert fl.equal(primal, f(X))
    assert fl.allclose(tangent, difference(f), rtol=1e-6, atol=1e-8)


def test_complex_tangents():
    x, v = fl.complex(X, V), fl.complex(V, -X)
    with dual_level():
        dual = make_dual(x, v)
        assert fl.allclose(unpack_dual(dual.exp() * dual).tangent, v * x.exp() * (1 + x))
        assert fl.allclose(unpack_dual(dual.conj()).tangent, v.conj())


def test_what_has_no_tangent():
    with dual_level():
        dual = make_dual(X, V)
        assert unpack_dual(X).tangent is None and unpack_dual(dual > 1).tangent is None
        assert unpack_dual(dual.detach() * 2).tangent is None
        assert fl.equal(unpack_dual(dual).tangent, V) and fl.equal(unpack_dual(dual).primal, X)
        y = dual * 2
    assert unpack_dual(y).tangent is None


def test_forward_and_backward_together():
    w = fl.tensor([3.0, 4.0], dtype=fl.float64, requires_grad=True)
    with dual_level():
        primal, tangent = unpack_dual((w * make_dual(X, V)).sum())
        assert primal.item() == 11 and tangent.item() == 43
        tangent.backward()
        assert w.grad.tolist() == [1, 10]
        cube = unpack_dual(make_dual(w, V) ** 3)
        cube.tangent.sum().backward()
    assert w.grad.tolist() == [19, 250]


def test_levels():
    with pytest.raises(RuntimeError, match="no level exists"):
        make_dual(X, V)
    with dual_level():
        with pytest.raises(RuntimeError, match="Nested"):
            forward_ad.enter_dual_level()
        with pytest.raises(ValueError, match="primal to be floating point"):
            make_dual(fl.tensor([1, 2]), V)
        with pytest.raises(RuntimeError, match="different size"):
            make_dual(X, fl.ones(3))
    with fl.no_grad():
        with dual_level():
            assert unpack_dual(make_dual(X, V) * 2).tangent.tolist() == [2, 20]
        assert not fl.is_grad_enabled()


class Square(Function):
    """Its jvp is wrong by a factor of 10, so that a test sees who was asked."""

    @staticmethod
    def forward(x, k):
        return x * x * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(inputs[0])
        ctx.k = inputs[1]

    @staticmethod
    def jvp(ctx, tangent, _):
        (x,) = ctx.saved_tensors
        return 20 * x * tangent * ctx.k


class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x + 1

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h


def test_functions():
    value, tangent = fl.func.jvp(lambda x: Square.apply(x, 3.0) * 2, (X,), (V,))
    assert value.tolist() == [6, 24] and tangent.tolist() == [120, 2400]
    both = fl.func.jvp(lambda x: Twice.apply(x.sin()), (X,), (V,))[1]
    assert fl.allclose(both[0], 2 * V * X.cos()) and fl.allclose(both[1], V * X.cos())
    w = X.clone().requires_grad_()
    with pytest.raises(NotImplementedError, match="without a backward"), dual_level():
        Square.apply(make_dual(w, V), 3.0)


def test_gradcheck():
    x, z = X.clone().requires_grad_(), fl.complex(X, V).requires_grad_()
    assert gradcheck(lambda a, b: (a * b.abs(), b * b), (x, z), check_forward_ad=True)
    only = dict(check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(RuntimeError, match="forward mode mismatch for output 0"):
        gradcheck(lambda a: Square.apply(a, 1.0), (x,), **only)
    assert not gradcheck(lambda a: Square.apply(a, 1.0), (x,), raise_exception=False, **only)


def test_func():
    value, along = fl.func.jvp(lambda a, b: (a * b, a.sum()), (X, X + 1), (V, V))
    assert along[0].tolist() == [3, 50] and along[1].item() == 11 and value[1].item() == 3
    outer = fl.func.jvp(lambda a: fl.func.jvp(lambda b: b**3, (a,), (fl.ones_like(X),))[1], (X,), (V,))
    assert outer[0].tolist() == [3, 12] and outer[1].tolist() == [6, 120]
    got = fl.func.jacfwd(lambda a, b: {"k": (a * b).sum(), "l": a[:1]}, argnums=(0, 1))(X, X + 2)
    assert [g.tolist() for g in got["k"]] == [[3, 4], [1, 2]]
    assert [g.tolist() for g in got["l"]] == [[[1, 0]], [[0, 0]]]
    assert fl.func.hessian(lambda a: (a**3).sum())(X).tolist() == [[6, 0], [0, 12]]
    slope = fl.func.grad(lambda a: fl.func.jvp(fl.sin, (a,), (V,))[1].sum())(X)
    assert fl.allclose(slope, -X.sin() * V)


def test_jacobians_in_forward_mode():
    def f(a, b):
        return fl.outer(a, b).sin(), (a * b).sum()

    inputs = X, X + 1
    forward = functional.jacobian(f, inputs, strategy="forward-mode", vectorize=True)
    for rows, expected in zip(forward, functional.jacobian(f, inputs)):
        assert all(fl.allclose(a, b) for a, b in zip(rows, expected))
    got = functional.hessian(lambda a: (a**3).prod(), X, outer_jacobian_strategy="forward-mode")
    assert fl.allclose(got, functional.hessian(lambda a: (a**3).prod(), X))
    assert functional.jacobian(lambda a: a[:0], X, strategy="forward-mode").shape == (0, 2)
    with pytest.raises(AssertionError, match="sideways"):
        functional.jacobian(f, inputs, strategy="sideways")
    with pytest.raises(RuntimeError, match="strict"):
        functional.jacobian(f, inputs, strategy="forward-mode", strict=True)
