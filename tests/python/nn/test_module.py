"""Module: what it registers, finds, converts, saves and calls."""
import copy
import pickle

import pytest

import flambeau as fl
from flambeau import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(fl.tensor([2.0, 3.0]))
        self.register_buffer("count", fl.tensor(0))
        self.register_buffer("scratch", fl.zeros(1), persistent=False)
        self.inner = nn.Linear(2, 2, bias=False)

    def forward(self, x):
        return self.inner(x) * self.factor


def test_registration():
    m = Scale()
    assert [n for n, _ in m.named_parameters()] == ["factor", "inner.weight"]
    assert [n for n, _ in m.named_buffers()] == ["count", "scratch"]
    assert [n for n, _ in m.named_modules()] == ["", "inner"]
    assert list(m.state_dict()) == ["factor", "count", "inner.weight"]
    assert m.get_parameter("inner.weight") is m.inner.weight
    assert m.get_buffer("count") is m.count
    assert m.get_submodule("inner") is m.inner
    m.inner = None
    assert m.inner is None and list(m.children()) == []
    del m.factor
    assert not hasattr(m, "factor")


def test_names_are_found_once():
    m = nn.Module()
    m.a = nn.Linear(1, 1)
    m.b = m.a
    assert len(list(m.parameters())) == 2 and len(list(m.named_parameters(remove_duplicate=False))) == 4
    assert len(list(m.modules())) == 2


@pytest.mark.parametrize("error, text, act", [
    (KeyError, 'contain "."', lambda m: m.register_parameter("a.b", None)),
    (KeyError, "empty string", lambda m: m.register_buffer("", None)),
    (KeyError, "already exists", lambda m: m.register_buffer("forward", None)),
    (TypeError, "has to be an nn.Parameter or None", lambda m: m.register_parameter("p", fl.ones(1))),
    (TypeError, "parameter 'factor' can become", lambda m: setattr(m, "factor", fl.ones(1))),
    (TypeError, "buffer 'count' can become", lambda m: setattr(m, "count", 3)),
    (TypeError, "child module 'inner' can become", lambda m: setattr(m, "inner", 3)),
    (TypeError, "is not a Module subclass", lambda m: m.add_module("x", 3)),
    (AttributeError, "has no attribute 'missing'", lambda m: m.missing),
    (AttributeError, "is not an nn.Module", lambda m: m.get_submodule("factor")),
    (ValueError, "expected to be boolean", lambda m: m.train("yes")),
    (TypeError, "has to be floating point or complex", lambda m: m.to(fl.int32)),
    (NotImplementedError, 'missing the required "forward"', lambda m: nn.Module()(1)),
])
def test_errors(error, text, act):
    with pytest.raises(error, match=text):
        act(Scale())


def test_assignment_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(fl.ones(1))

    with pytest.raises(AttributeError, match="before Module.__init__"):
        Early()


def test_non_leaf_is_no_parameter():
    computed = nn.Parameter(fl.ones(1)) * 2
    computed.__class__ = nn.Parameter
    with pytest.raises(ValueError, match="has to be a leaf"):
        nn.Module().register_parameter("w", computed)


def test_buffer_class():
    m = nn.Module()
    m.kept = nn.Buffer(fl.ones(2))
    m.lost = nn.Buffer(fl.ones(2), persistent=False)
    assert list(m.state_dict()) == ["kept"] and isinstance(m.lost, nn.Buffer)


def test_conversion_keeps_parameters():
    m = Scale()
    weight = m.inner.weight
    (m(fl.ones(1, 2)).sum()).backward()
    m.double()
    assert m.inner.weight is weight and weight.dtype is fl.float64 and weight.grad.dtype is fl.float64
    assert m.count.dtype is fl.int64
    assert m.to(fl.float32).factor.dtype is fl.float32
    assert m.half().factor.dtype is fl.float16 and m.bfloat16().factor.dtype is fl.bfloat16
    assert m.to(fl.ones(1, dtype=fl.float64)).factor.dtype is fl.float64
    assert m.to("cpu", fl.float32).factor.dtype is fl.float32


def test_modes_and_gradients():
    m = Scale()
    assert m.training and not m.eval().inner.training and m.train().inner.training
    m(fl.ones(1, 2)).sum().backward()
    assert m.factor.grad is not None
    m.zero_grad(set_to_none=False)
    assert m.factor.grad.tolist() == [0, 0]
    m.zero_grad()
    assert m.factor.grad is None
    assert not any(p.requires_grad for p in m.requires_grad_(False).parameters())


def test_apply_goes_from_the_inside_out():
    order = []
    Scale().apply(lambda m: order.append(type(m).__name__))
    assert order == ["Linear", "Scale"]


def test_repr():
    assert repr(nn.Linear(2, 3)) == "Linear(in_features=2, out_features=3, bias=True)"
    assert repr(nn.Sequential(nn.ReLU(), nn.Linear(1, 2))) == (
        "Sequential(\n  (0): ReLU()\n  (1): Linear(in_features=1, out_features=2, bias=True)\n)")
    assert repr(nn.ModuleList([nn.ReLU(), nn.ReLU()])) == "ModuleList(\n  (0-1): 2 x ReLU()\n)"


def test_pickle_and_deepcopy():
    m = Scale()
    m.eval()
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert not twin.training and twin.factor is not m.factor
        assert isinstance(twin.factor, nn.Parameter) and twin.factor.requires_grad
        assert twin.factor.tolist() == [2, 3] and list(twin.state_dict()) == list(m.state_dict())
    shared = nn.Module()
    shared.a = shared.b = nn.Parameter(fl.ones(1))
    twin = copy.deepcopy(shared)
    assert twin.a is twin.b


# --- state ---
def test_load_state_dict():
    m, other = Scale(), Scale()
    with fl.no_grad():
        other.factor.fill_(7)
    result = m.load_state_dict(other.state_dict())
    assert m.factor.tolist() == [7, 7] and repr(result) == "<All keys matched successfully>"
    assert m.state_dict()._metadata["inner"] == {"version": 1}
    state = other.state_dict()
    state["more"] = state.pop("factor")
    missing, unexpected = m.load_state_dict(state, strict=False)
    assert missing == ["factor"] and unexpected == ["more"]
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict(state)
    text = str(error.value)
    assert text.startswith("Error(s) in loading state_dict for Scale:\n\tMissing key(s) in state_dict: "
                           "\"factor\". ")
    assert 'Unexpected key(s) in state_dict: "more". ' in text


def test_load_wrong_size():
    m = Scale()
    state = m.state_dict()
    state["factor"] = fl.ones(3)
    with pytest.raises(RuntimeError, match="size mismatch for factor: .*3.* in the checkpoint"):
        m.load_state_dict(state)
    with pytest.raises(TypeError, match="dict-like"):
        m.load_state_dict(3)


def test_load_with_assign():
    m = Scale()
    state = {k: v.double() if v.is_floating_point() else v for k, v in m.state_dict().items()}
    m.load_state_dict(state, assign=True)
    assert m.factor.dtype is fl.float64 and isinstance(m.factor, nn.Parameter) and m.factor.requires_grad
    state, copied = m.state_dict(), Scale()
    Scale().load_state_dict(state, assign=True)
    copied.load_state_dict(state)
    assert copied.factor.data_ptr() != state["factor"].data_ptr()


def test_state_hooks():
    m, seen = Scale(), []
    m.register_state_dict_pre_hook(lambda module, prefix, keep: seen.append("before"))
    m.register_state_dict_post_hook(lambda module, state, prefix, meta: state.update(extra=1))
    m.register_load_state_dict_pre_hook(lambda module, state, *rest: state.pop("extra"))
    m.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    state = m.state_dict()
    assert seen == ["before"] and state["extra"] == 1
    del state["factor"]
    m.load_state_dict(state)


def test_extra_state():
    class Counted(nn.Module):
        n = 0

        def get_extra_state(self):
            return {"n": self.n}

        def set_extra_state(self, state):
            self.n = state["n"]

    m, other = Counted(), Counted()
    m.n = 5
    other.load_state_dict(m.state_dict())
    assert other.n == 5
    with pytest.raises(RuntimeError, match="Missing key.*_extra_state"):
        other.load_state_dict({})


# --- hooks ---
def test_forward_hooks():
    m, order = nn.Identity(), []
    m.register_forward_pre_hook(lambda module, args: order.append("pre") or (args[0] + 1,))
    first = m.register_forward_hook(lambda module, args, out: order.append("post") or out * 2)
    m.register_forward_hook(lambda module, args, out: order.append("first"), prepend=True)
    assert m(fl.tensor(1.0)).item() == 4 and order == ["pre", "first", "post"]
    first.remove()
    assert m(fl.tensor(1.0)).item() == 2


def test_hooks_with_kwargs():
    class Add(nn.Module):
        def forward(self, x, *, y):
            return x + y

    m = Add()
    m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"y": kwargs["y"] + 1}), with_kwargs=True)
    m.register_forward_hook(lambda module, args, kwargs, out: out * kwargs["y"], with_kwargs=True)
    assert m(fl.tensor(1.0), y=fl.tensor(2.0)).item() == 12


def test_always_called_hook():
    class Fails(nn.Module):
        def forward(self):
            raise ValueError("no")

    m, seen = Fails(), []
    m.register_forward_hook(lambda module, args, out: seen.append(out), always_call=True)
    m.register_forward_hook(lambda module, args, out: seen.append("never"))
    with pytest.raises(ValueError, match="no"):
        m()
    assert seen == [None]


def test_full_backward_hooks():
    m, seen = nn.Linear(2, 1, bias=False), {}
    with fl.no_grad():
        m.weight.copy_(fl.tensor([[2.0, 3.0]]))
    m.register_full_backward_pre_hook(lambda module, grad_out: (grad_out[0] * 10,))
    m.register_full_backward_hook(lambda module, grad_in, grad_out: seen.update(i=grad_in, o=grad_out) or
                                  (grad_in[0] + 1,))
    x = fl.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    assert seen["o"][0].tolist() == [[10]] and seen["i"][0].tolist() == [[20, 30]]
    assert x.grad.tolist() == [[21, 31]] and m.weight.grad.tolist() == [[10, 10]]


def test_backward_hook_without_input_gradient():
    m, seen = nn.Linear(2, 1), []
    m.register_full_backward_hook(lambda module, grad_in,
                                  grad_out: seen.append((grad_in, grad_out[0].tolist())))
    m(fl.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1]])]


def test_kinds_of_backward_hooks_do_not_mix():
    m = nn.Linear(1, 1)
    m.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="both kinds are registered"):
        m.register_backward_hook(lambda *a: None)


def test_hooks_of_all_modules():
    from flambeau.nn.modules.module import (
        register_module_forward_hook, register_module_parameter_registration_hook,
    )
    seen = []
    with register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__)):
        nn.Sequential(nn.ReLU())(fl.ones(1))
    with register_module_parameter_registration_hook(lambda m, name, p: seen.append(name)):
        nn.Linear(1, 1)
    nn.Linear(1, 1)(fl.ones(1))
    assert seen == ["ReLU", "Sequential", "weight", "bias"]


def test_compile():
    m = nn.Linear(2, 2)
    x = fl.randn(3, 2)
    expected = m(x)
    m.compile(backend="eager")
    assert fl.allclose(m(x), expected)
    assert "_compiled_call_impl" not in m.__getstate__()


def test_parameter():
    p = nn.Parameter(fl.ones(2))
    assert p.requires_grad and isinstance(p, fl.Tensor) and p.is_leaf and type(p * 2) is fl.Tensor
    assert repr(p).startswith("Parameter containing:\ntensor(")
    assert not nn.Parameter(fl.ones(1), requires_grad=False).requires_grad
    twin = pickle.loads(pickle.dumps(p))
    assert isinstance(twin, nn.Parameter) and twin.tolist() == [1, 1]


def test_lazy():
    m = nn.LazyLinear(3)
    with pytest.raises(RuntimeError, match="uninitialized parameter"):
        m.weight.shape
    assert m(fl.ones(2, 5)).shape == (2, 3)
    assert type(m) is nn.Linear and m.in_features == 5 and m.weight.shape == (3, 5)
    loaded = nn.LazyLinear(3)
    loaded.load_state_dict(m.state_dict())
    assert loaded(fl.ones(2, 5)).tolist() == m(fl.ones(2, 5)).tolist()
    conv = nn.LazyConv2d(4, 3)
    assert conv(fl.ones(1, 2, 5, 5)).shape == (1, 4, 3, 3) and conv.in_channels == 2
    assert nn.LazyConvTranspose1d(4, 3, 1, 0, 0, 1, False).bias is None
    assert nn.LazyConv1d(4, 3, dtype=fl.float64).weight.dtype is fl.float64
    norm = nn.LazyBatchNorm1d()
    norm(fl.randn(4, 6))
    assert norm.num_features == 6 and type(norm) is nn.BatchNorm1d
