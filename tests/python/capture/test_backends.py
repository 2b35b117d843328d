"""compile() with a backend that is a function of a torch.fx graph."""
import operator

import pytest
from observe import observe
from program import files
from program import names as program_names

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn
from flambeau._dynamo.exc import BackendCompilerFailed

pytestmark = pytest.mark.skipif(not torch._C._has_capture, reason="capture needs another version of CPython")


class Backend:
    """Keeps what it gets and runs the graph."""

    def __init__(self, change=lambda gm: None):
        self.graphs, self.inputs, self.change, self.runs = [], [], change, 0

    def __call__(self, gm, inputs):
        self.graphs.append(gm)
        self.inputs.append(inputs)
        self.change(gm)
        gm.recompile()

        def run(*args):
            self.runs += 1
            return gm(*args)

        return run


W = torch.arange(12.0).reshape(3, 4)


def check(f, *args, **options):
    """The function plainly and with a backend, twice; gives the backend."""
    backend = Backend()
    compiled = torch.compile(f, backend=backend, **options)
    for call in range(2):
        want, got = f(*args), compiled(*args)
        assert type(want) is type(got)
        for a, b in zip(want, got) if isinstance(want, tuple) else [(want, got)]:
            if isinstance(a, torch.Tensor):
                assert torch.equal(a, b) and a.requires_grad == b.requires_grad
            else:
                assert a == b
    assert len(backend.graphs) == len(compiled.explain()["graphs"])
    return backend


def names(gm):
    return [n.name for n in gm.graph.nodes]


def test_names_and_code():
    def f(x, d, t):
        y = x @ W
        y += 1
        with torch.no_grad():
            z = y * 2
        y[0] = 5
        m = y > 0
        y = torch.where(m, y, -y) / d["k"] + t[1]
        a, b = y.chunk(2, dim=1)
        value, _ = torch.max(y, 1)
        return y.abs(), z, a - b, value, F.cross_entropy(y, torch.zeros(2, dtype=torch.long)), y.T

    backend = check(f, torch.ones(2, 3), {"k": torch.full((4,), 2.0)}, [0, torch.ones(4)])
    gm, = backend.graphs
    assert gm.code == """


def forward(self, L_x_ : torch.Tensor, L_d_k_ : torch.Tensor, L_t_1_ : torch.Tensor, G_W_ : torch.Tensor):
    l_x_ = L_x_
    l_d_k_ = L_d_k_
    l_t_1_ = L_t_1_
    g_w_ = G_W_
    y = l_x_ @ g_w_;  l_x_ = g_w_ = None
    y += 1;  y_1 = y;  y = None
    _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None
    z = y_1 * 2
    _set_grad_enabled_1 = torch._C._set_grad_enabled(True);  _set_grad_enabled_1 = None
    y_1[0] = 5;  setitem = y_1;  setitem = None
    m = y_1 > 0
    neg = -y_1
    where = torch.where(m, y_1, neg);  m = y_1 = neg = None
    truediv = where / l_d_k_;  where = l_d_k_ = None
    y_2 = truediv + l_t_1_;  truediv = l_t_1_ = None
    chunk = y_2.chunk(2, dim = 1)
    a = chunk[0]
    b = chunk[1];  chunk = None
    max_1 = torch.max(y_2, 1)
    value = max_1[0];  max_1 = None
    abs_1 = y_2.abs()
    sub = a - b;  a = b = None
    zeros = torch.zeros(2, dtype = torch.int64)
    cross_entropy = torch.nn.functional.cross_entropy(y_2, zeros);  zeros = None
    getattr_1 = y_2.T;  y_2 = None
    return (abs_1, z, sub, value, cross_entropy, getattr_1)
"""
    assert [tuple(i.shape) for i in backend.inputs[0]] == [(2, 3), (4,), (4,), (3, 4)]
    text = gm.print_readable(print_output=False)
    assert 'y: "f32[2, 4]" = l_x_ @ g_w_' in text and "in f, code: m = y > 0" in text


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.layers = nn.ModuleList([nn.Linear(4, 4)])
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        h = F.relu(self.norm(self.fc(x))) * 2
        return self.layers[0](h) + self.shift


def test_modules_and_gradients():
    torch.manual_seed(0)
    model, plain = Model(), Model()
    plain.load_state_dict(model.state_dict())
    backend = Backend()
    compiled = torch.compile(model, backend=backend)
    for step in range(2):
        x = torch.arange(6.0).reshape(2, 3) + step
        compiled(x).square().sum().backward()
        plain(x).square().sum().backward()
    for (name, a), b in zip(model.named_parameters(), plain.parameters()):
        assert torch.equal(a.grad, b.grad), name
    for a, b in zip(model.buffers(), plain.buffers()):
        assert torch.equal(a, b)
    gm, = backend.graphs
    assert backend.runs == 2
    assert names(gm)[:2] == ["l_x_", "l_self_modules_fc_parameters_weight_"]
    assert "l_self_modules_layers_modules_0_parameters_bias_" in names(gm)
    assert "l_self_buffers_shift_" in names(gm)
    assert names(gm)[-8:] == ["linear", "add_", "batch_norm", "relu", "h", "linear_1", "add", "output"]
    assert backend.inputs[0][1] is model.fc.weight


def test_a_backend_that_changes_the_graph():
    def change(gm):
        for node in gm.graph.nodes:
            if node.target is operator.add:
                node.target = operator.mul

    compiled = torch.compile(lambda x: (x + 3) - 1, backend=Backend(change))
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]


def test_sizes_and_numbers_are_symbols():
    def f(x, n):
        return x.view(x.shape[0] * 2, -1) + n, x.shape[0] + n, x.new_zeros(max(x.shape[0], 3))

    backend = Backend()
    compiled = torch.compile(f, backend=backend, dynamic=True)
    for rows, n in ((4, 3), (6, 3), (8, 5), (10, 7)):
        x = torch.arange(6.0 * rows).reshape(rows, 6)
        for a, b in zip(compiled(x, n), f(x, n)):
            assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
    assert len(backend.graphs) == 2
    assert names(backend.graphs[1])[:4] == ["s0", "s1", "l_x_", "l_n_"]
    assert 'L_x_: "f32[s0, s1]"' in backend.graphs[1].print_readable(print_output=False)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = 0

    def forward(self, x):
        self.counter += 1
        return x + self.counter


def test_a_counter_is_a_symbol():
    model, backend = Counter(), Backend()
    compiled = torch.compile(model, backend=backend)
    assert [compiled(torch.zeros(1)).item() for _ in range(10)] == list(range(1, 11)) and model.counter == 10
    assert len(backend.graphs) == 2 and "l_self_counter" in names(backend.graphs[1])


def test_breaks_give_several_graphs():
    def f(x):
        y = x + 1
        print(end="")
        return y * 2

    backend = check(f, torch.ones(2))
    assert [names(g)[1:-1] for g in backend.graphs] == [["y"], ["mul"]]


def test_what_c_code_calls():
    def f(x):
        parts = list(map(torch.exp, [x, x + 1]))
        return sum(parts), x * 2, [row * 2 for row in x][0]

    check(f, torch.arange(4.0).reshape(2, 2))


def test_functions_of_autograd():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0]

    x = torch.tensor([2.0], requires_grad=True)
    backend = Backend()
    torch.compile(lambda x: Square.apply(x) + 1, backend=backend)(x).backward()
    assert x.grad.item() == 6.0


def test_random_numbers_and_modes():
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        return y, torch.nn.functional.dropout(x, 0.5), torch.rand(3), torch.is_grad_enabled()

    x = torch.arange(4.0).reshape(2, 2)
    torch.manual_seed(1)
    want = f(x)
    compiled = torch.compile(f, backend=Backend())
    for _ in range(2):
        torch.manual_seed(1)
        got = compiled(x)
        assert got[0].dtype is torch.bfloat16 and all(map(torch.equal, got[:3], want[:3])) and got[3]
    assert not torch.is_autocast_enabled("cpu")


def test_backward_inside():
    def f(x, w):
        loss = (x * w).square().sum()
        loss.backward()
        return loss.detach(), w.grad * 1

    w, v = (torch.ones(2, requires_grad=True) for _ in range(2))
    x = torch.tensor([1.0, 2.0])
    compiled = torch.compile(f, backend=Backend())
    for _ in range(2):
        assert all(map(torch.equal, compiled(x, w), f(x, v)))


def test_errors_of_backends():
    def fails(gm, inputs):
        raise KeyError("mine")

    with pytest.raises(BackendCompilerFailed, match="fails.*\n.*mine"):
        torch.compile(lambda x: x + 1, backend=fails)(torch.ones(1))

    def fails_later(gm, inputs):
        def run(*args):
            raise KeyError("later")
        return run

    with pytest.raises(KeyError, match="later"):
        torch.compile(lambda x: x + 1, backend=fails_later)(torch.ones(1))
    with pytest.raises(BackendCompilerFailed, match="NoneType"):
        torch.compile(lambda x: x + 1, backend=lambda gm, inputs: None)(torch.ones(1))
    with pytest.raises(TypeError, match="tuple"):
        torch.compile(lambda x: x + 1, backend=lambda gm, inputs: lambda *a: a[0])(torch.ones(1))
    with pytest.raises(ValueError, match="1 values, got 2"):
        torch.compile(lambda x: x + 1, backend=lambda gm, inputs: lambda *a: (a[0], a[0]))(torch.ones(1))


def test_errors_of_the_program():
    def f(x, i):
        try:
            return x[i], 1
        except IndexError:
            return x, 2

    compiled = torch.compile(f, backend=Backend())
    assert compiled(torch.ones(3), torch.tensor(1))[1] == 1


def test_names_of_backends():
    seen = []

    @torch._dynamo.register_backend
    def my_backend(gm, inputs):
        seen.append(gm)
        return torch._dynamo.lookup_backend("inductor")(gm, inputs)

    assert "my_backend" in torch._dynamo.list_backends()
    assert torch._dynamo.lookup_backend("my_backend") is my_backend
    compiled = torch.compile(lambda x: torch.relu(x) + 1, backend="my_backend")
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0] and len(seen) == 1
    gm = torch.fx.symbolic_trace(lambda x: x * 3)
    for name in ("eager", "aot_eager", "inductor"):
        assert torch._dynamo.lookup_backend(name)(gm, [torch.ones(1)])(torch.ones(1)).item() == 3.0
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="nothing"):
        torch._dynamo.lookup_backend("nothing")


def test_guards_hold_for_functions_too():
    model = nn.Linear(2, 2)
    backend = Backend()
    compiled = torch.compile(lambda x: model(x) if model.training else x, backend=backend)
    compiled(torch.ones(2))
    model.eval()
    assert torch.equal(compiled(torch.ones(2)), torch.ones(2))
    model.train()
    compiled(torch.ones(2, dtype=torch.float32))
    assert len(backend.graphs) == 1


PROGRAMS = [(path, name) for path in files() for name in program_names(path)]


@pytest.mark.parametrize("path, name", PROGRAMS, ids=[f"{path.stem}.{name}" for path, name in PROGRAMS])
def test_program(path, name):
    """What runs the graph as it is gives what the program gives."""
    def run(function, **options):
        return torch.compile(function, backend=lambda gm, inputs: gm.forward, **options)

    assert not (differences := observe(path, name, run)), "\n".join(differences[:10])
