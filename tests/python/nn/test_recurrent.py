"""Recurrent layers as operators: against their cells, gradients of first and second order, capture."""
import pytest

import flambeau as fl
from flambeau import nn
from flambeau.nn.utils import rnn

KINDS = {"lstm": (nn.LSTM, nn.LSTMCell, {}), "gru": (nn.GRU, nn.GRUCell, {}),
         "rnn_tanh": (nn.RNN, nn.RNNCell, {}), "rnn_relu": (nn.RNN, nn.RNNCell, {"nonlinearity": "relu"})}


def by_cells(net, make_cell, x):
    """A network of one layer over (length, batch, features), by a cell for each direction."""
    outputs = []
    for suffix in ("_l0", "_l0_reverse") if net.bidirectional else ("_l0",):
        cell = make_cell(net.input_size, net.hidden_size)
        weights = {f"{n}": getattr(net, n + suffix) for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        state, steps = None, []
        for row in reversed(x) if suffix.endswith("reverse") else x:
            state = fl.nn.utils.stateless.functional_call(cell, weights, (row, state))
            steps.append(state[0] if isinstance(state, tuple) else state)
        outputs.append(fl.stack(steps[::-1] if suffix.endswith("reverse") else steps))
    return fl.cat(outputs, -1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_layers_are_their_cells_in_a_row(kind, bidirectional):
    make, make_cell, options = KINDS[kind]
    fl.manual_seed(0)
    net = make(3, 4, bidirectional=bidirectional, **options).double()
    x = fl.randn(6, 2, 3, dtype=fl.float64, requires_grad=True)
    leaves = [x, *net.parameters()]
    whole = net(x)[0]
    steps = by_cells(net, lambda *sizes: make_cell(*sizes, **options).double(), x)
    fl.testing.assert_close(whole, steps)
    cotangent = fl.randn_like(whole)
    for a, b in zip(fl.autograd.grad(whole, leaves, cotangent), fl.autograd.grad(steps, leaves, cotangent)):
        fl.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_of_packed_sequences(kind):
    make, _, options = KINDS[kind]
    fl.manual_seed(1)
    net = make(2, 2, num_layers=2, bidirectional=True, **options).double()

    def loss(*sequences):
        packed, state = net(rnn.pack_sequence(sequences, enforce_sorted=False))
        states = state if kind == "lstm" else (state,)
        return packed.data.square().sum() + sum(s.square().sum() for s in states)

    inputs = tuple(fl.randn(n, 2, dtype=fl.float64, requires_grad=True) for n in (2, 3, 1))
    assert fl.autograd.gradcheck(loss, inputs)
    assert fl.autograd.gradgradcheck(loss, inputs)


def test_derivatives_with_a_projection():
    net = nn.LSTM(2, 3, proj_size=2, batch_first=True).double()
    x = fl.randn(2, 3, 2, dtype=fl.float64, requires_grad=True)
    weights = list(net.parameters())
    assert fl.autograd.gradcheck(lambda x, *_: net(x)[0], (x, *weights))
    assert fl.autograd.gradgradcheck(lambda x, *_: net(x)[0].sum(), (x, *weights))


class Outputs(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_is_eager(kind):
    make, _, options = KINDS[kind]
    net, x = Outputs(make(3, 4, num_layers=2, **options)), fl.randn(5, 2, 3)
    compiled = fl.compile(net)
    assert fl.equal(compiled(x), net(x))
    gradients = []
    for run in (compiled, net):
        net.zero_grad()
        run(x).square().sum().backward()
        gradients.append([p.grad for p in net.parameters()])
    for a, b in zip(*gradients):
        fl.testing.assert_close(a, b)


def test_dropout_is_between_layers_in_training():
    net = nn.LSTM(3, 4, num_layers=2, dropout=1.0)
    x = fl.randn(5, 2, 3)
    fl.testing.assert_close(net(x)[0], net(fl.zeros_like(x))[0])  # the second layer sees zeros
    net.eval()
    assert not fl.equal(net(x)[0], net(fl.zeros_like(x))[0])


def test_half_precision_and_autocast():
    net, x = nn.LSTM(3, 4), fl.randn(5, 2, 3)
    expected = net(x)[0]
    with fl.autocast("cpu", dtype=fl.bfloat16):
        y = net(x)[0]
    assert y.dtype == fl.bfloat16
    fl.testing.assert_close(y.float(), expected, rtol=0.05, atol=0.05)
    y.float().sum().backward()
    assert all(p.grad.dtype == fl.float32 for p in net.parameters())
    half = net.to(fl.bfloat16)(x.to(fl.bfloat16))[0]
    fl.testing.assert_close(half.float(), expected, rtol=0.05, atol=0.05)


def test_operators_say_what_is_wrong():
    net, x = nn.GRU(3, 4), fl.randn(5, 2, 3)
    weights, rest = list(net.parameters()), (True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="expected 4 parameters"):
        fl.gru(x, fl.zeros(1, 2, 4), weights[:3], *rest)
    with pytest.raises(RuntimeError, match="larger than 0"):
        fl.gru(x[:0], fl.zeros(1, 2, 4), weights, *rest)
    with pytest.raises(RuntimeError, match="state of sizes"):
        fl.gru(x, fl.zeros(1, 3, 4), weights, *rest)
    with pytest.raises(RuntimeError, match="descending"):
        fl.gru(x[:, 0], fl.tensor([2, 3]), fl.zeros(1, 2, 4), weights, *rest[:-1])


def test_the_name_for_layers_of_other_programs():
    from flambeau import _VF

    assert _VF.lstm is fl._C.lstm and fl._VF.gru_cell is fl._C.gru_cell
    with pytest.raises(AttributeError, match="no operator 'lstn'"):
        _VF.lstn


def test_many_tensors_are_joined():
    """Beyond a few they are copied one by one; the result is the same."""
    pieces = [fl.randn(n, 3) for n in (1, 0, 2, 5, 1, 1, 3, 1, 2, 1)] + [fl.randn(3, 4).t()]
    joined, at = fl.cat(pieces), 0
    for piece in pieces:
        assert fl.equal(joined[at:at + len(piece)], piece)
        at += len(piece)
    assert at == len(joined)
    columns = fl.cat([p.t() for p in pieces], 1)
    assert fl.equal(columns, joined.t())
    assert fl.cat([*pieces, fl.zeros(2, 3, dtype=fl.float64)]).dtype == fl.float64
    out = fl.empty(at, 3)
    assert fl.cat(pieces, out=out) is out and fl.equal(out, joined)
