"""flambeau.fx: graphs made, read, changed and run."""
import copy
import operator
import pickle

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import fx, nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.w = nn.Parameter(torch.ones(4))
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x, k=2):
        h = torch.relu(self.fc(x)) + self.w
        h = self.body(h) * k
        return h.softmax(-1)[:, 0:2], F.relu(h).T, torch.cat([h, h], dim=1)


X = torch.arange(6.0).reshape(2, 3)


def equal(a, b):
    return len(a) == len(b) and all(map(torch.equal, a, b))


def test_symbolic_trace():
    module = Small()
    traced = fx.symbolic_trace(module)
    assert [(n.op, n.name) for n in traced.graph.nodes] == [
        ("placeholder", "x"), ("placeholder", "k"), ("call_module", "fc"), ("call_function", "relu"),
        ("get_attr", "w"), ("call_function", "add"), ("call_module", "body_0"), ("call_module", "body_1"),
        ("call_function", "mul"), ("call_method", "softmax"), ("call_function", "getitem"),
        ("call_function", "relu_1"), ("call_function", "cat"), ("call_function", "getattr_1"),
        ("output", "output")]
    traced.graph.lint()
    assert equal(traced(X), module(X)) and equal(traced(X, k=3), module(X, k=3))
    assert [n for n, _ in traced.named_parameters()] == [n for n, _ in module.named_parameters()]


@pytest.mark.parametrize("change", [copy.deepcopy, copy.copy, lambda g: pickle.loads(pickle.dumps(g)),
                                    lambda g: fx.Transformer(g).transform(),
                                    lambda g: fx.GraphModule(g, copy.deepcopy(g.graph))])
def test_copies_do_the_same(change):
    traced = fx.symbolic_trace(Small())
    assert equal(change(traced)(X), traced(X))
    assert isinstance(change(traced), fx.GraphModule)


def test_code():
    def f(x, y):
        z = -x[0] * 2 + y.T
        z += 1
        return torch.add(z, y, alpha=2).view(-1), abs(z) ** 2 // 3

    traced = fx.symbolic_trace(f)
    assert traced.code == """


def forward(self, x, y):
    getitem = x[0];  x = None
    neg = -getitem;  getitem = None
    mul = neg * 2;  neg = None
    getattr_1 = y.T
    add = mul + getattr_1;  mul = getattr_1 = None
    add_1 = add + 1;  add = None
    add_2 = torch.add(add_1, y, alpha = 2);  y = None
    view = add_2.view(-1);  add_2 = None
    abs_1 = operator_abs(add_1);  add_1 = None
    pow_1 = abs_1 ** 2;  abs_1 = None
    floordiv = pow_1 // 3;  pow_1 = None
    return (view, floordiv)
"""
    assert str(traced.graph).splitlines()[:3] == [
        "graph():", "    %x [num_users=1] = placeholder[target=x]",
        "    %y [num_users=2] = placeholder[target=y]"]
    assert ("%add_2 [num_users=1] = call_function[target=torch.add](args = (%add_1, %y), "
            "kwargs = {alpha: 2})") in str(traced.graph)
    args = torch.ones(2, 2, 2), torch.arange(4.0).reshape(2, 2)
    assert equal(traced(*args), f(*args))


def test_graph_made_by_hand():
    graph = fx.Graph()
    x = graph.placeholder("x")
    weight = graph.get_attr("weight")
    added = graph.call_function(operator.iadd, (x, weight))
    graph.call_function(operator.setitem, (added, 0, 7.0))
    made = graph.call_method("sum", (added,), {"dim": 0})
    unused = graph.call_function(torch.exp, (x,))
    graph.output((made, [made, slice(None, 2)]))
    module = fx.GraphModule({"weight": torch.ones(3)}, graph, "Mine")
    assert type(module).__name__ == "Mine" and isinstance(module, fx.GraphModule)
    assert module(torch.zeros(3))[0].item() == 9.0 and module(torch.zeros(3))[1][1] == slice(None, 2)
    assert graph.eliminate_dead_code() and unused not in list(graph.nodes) and len(graph.nodes) == 6
    assert [n.name for n in reversed(graph.nodes)] == ["output", "sum_1", "setitem", "iadd", "weight", "x"]
    assert graph.find_nodes(op="call_method", target="sum") == [made]
    with pytest.raises(RuntimeError, match="sum_1"):
        graph.erase_node(made.args[0])
    with pytest.raises(ValueError, match="callable"):
        graph.create_node("call_function", "sum", ())
    with pytest.raises(RuntimeError, match="another graph"):
        fx.Graph().call_method("relu", (made,))


def test_changes():
    traced = fx.symbolic_trace(Small())
    for node in traced.graph.nodes:
        if node.target is torch.relu:
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(torch.tanh, node.args, node.kwargs)
            assert [n.name for n in node.replace_all_uses_with(new)] == ["add"]
            traced.graph.erase_node(node)
    traced.graph.find_nodes(op="call_function", target=operator.mul)[0].update_arg(1, 5)
    traced.graph.find_nodes(op="call_function", target=torch.cat)[0].update_kwarg("dim", 0)
    before = traced(X)
    traced.recompile()
    h = torch.tanh(traced.fc(X)) + traced.w
    for layer in traced.body.children():
        h = layer(h)
    h = h * 5
    assert equal(traced(X), (h.softmax(-1)[:, 0:2], F.relu(h).T, torch.cat([h, h])))
    assert not equal(before, traced(X)) and "tanh" in traced.code
    traced.graph.lint()
    with traced.graph.inserting_before():
        traced.graph.call_function(print, ("ran",))
    assert [n.op for n in traced.graph.nodes][0] == "call_function"


def test_order_and_users():
    graph = fx.Graph()
    x = graph.placeholder("x")
    a, b = graph.call_function(torch.exp, (x,)), graph.call_function(torch.sin, (x,))
    graph.output([a, b])
    assert list(x.users) == [a, b] and a < b and b > a and a.next is b and b.prev is a
    b.append(a)
    assert [n.name for n in graph.nodes] == ["x", "sin", "exp", "output"] and b < a
    a.replace_input_with(x, b)
    assert list(x.users) == [b] and a.all_input_nodes == [b]
    b.args = ()
    assert not x.users
    b.insert_arg(0, x)
    assert list(x.users) == [b]


class Doubled(fx.Interpreter):
    def call_function(self, target, args, kwargs):
        return 2 * super().call_function(target, args, kwargs)


def test_interpreter():
    traced = fx.symbolic_trace(lambda x, y: torch.exp(x) + y)
    assert fx.Interpreter(traced).run(torch.zeros(1), 1.0).item() == 2.0
    assert Doubled(traced).run(torch.zeros(1), 1.0).item() == 6.0
    with pytest.raises(RuntimeError, match="'y'"):
        fx.Interpreter(traced).run(torch.zeros(1))


def test_what_a_trace_can_not_know():
    with pytest.raises(fx.proxy.TraceError, match="branch on gt"):
        fx.symbolic_trace(lambda x: x if x > 0 else -x)
    with pytest.raises(fx.proxy.TraceError, match="loop over x"):
        fx.symbolic_trace(lambda x: [i for i in x])
    assert fx.symbolic_trace(lambda x, flag: x if flag else -x, {"flag": True})(X) is X


@fx.wrap
def branchy(x):
    return x if x.sum() > 0 else -x


def test_wrapped_functions_are_one_operation():
    traced = fx.symbolic_trace(lambda x: branchy(x) + 1)
    assert [n.target for n in traced.graph.nodes][1] is branchy
    assert traced(-X)[1, 2].item() == 6.0


def test_leaf_modules():
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    module = Small()
    graph = Whole().trace(module)
    assert not graph.find_nodes(op="call_module", target="fc")
    assert equal(fx.GraphModule(module, graph)(X), module(X))


def test_replace_pattern():
    traced = fx.symbolic_trace(lambda x, y: torch.relu(x + y) * torch.relu(y + x) - torch.relu(x))
    found = fx.replace_pattern(traced, lambda a, b: torch.relu(a + b), lambda a, b: torch.sigmoid(a) - b)
    assert [m.anchor.name for m in found] == ["relu", "relu_1"]
    x, y = X, X + 1
    assert torch.equal(traced(x, y), (torch.sigmoid(x) - y) * (torch.sigmoid(y) - x) - torch.relu(x))


def test_submodules():
    traced = fx.symbolic_trace(Small())
    assert traced.add_submodule("extra.inner", nn.Linear(1, 1))
    assert traced.get_submodule("extra.inner").in_features == 1
    traced.delete_all_unused_submodules()
    assert [n for n, _ in traced.named_modules()] == ["", "fc", "body", "body.0", "body.1"]
    assert traced.delete_submodule("fc") and not traced.delete_submodule("fc")
    with pytest.raises(RuntimeError, match="no attribute fc"):
        traced.graph.lint()


def test_table(capsys):
    fx.symbolic_trace(lambda x: x + 1).graph.print_tabular()
    row = capsys.readouterr().out.splitlines()[3]
    assert row.split() == ["call_function", "add", "operator.add", "(x,", "1)", "{}"]
