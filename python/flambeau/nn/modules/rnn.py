"""Recurrent layers and their cells."""
import math
import warnings

import flambeau as fl
from flambeau.nn import init
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]


_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


class _Recurrent(Module):
    def reset_parameters(self):
        """All weights uniform on +-1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)


class RNNBase(_Recurrent):
    """What RNN, LSTM and GRU share: weights weight_ih_l0, weight_hh_l0, ...; _reverse: other direction."""

    __constants__ = ["mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
                     "bidirectional", "proj_size"]

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__()
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        _check_arguments(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode, self.input_size = mode, input_size
        self.hidden_size, self.num_layers = hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._flat_weights_names, self._all_weights = [], []
        out_size = proj_size or hidden_size
        rows = _GATES[mode] * hidden_size
        for layer, suffix in self._passes():
            width = input_size if layer == 0 else out_size * (2 if bidirectional else 1)
            shapes = {"weight_ih": (rows, width), "weight_hh": (rows, out_size)}
            if bias:
                shapes.update(bias_ih=(rows,), bias_hh=(rows,))
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            names = [f"{name}{suffix}" for name in shapes]
            for name, shape in zip(names, shapes.values()):
                setattr(self, name, Parameter(fl.empty(shape, device=device, dtype=dtype)))
            self._flat_weights_names += names
            self._all_weights.append(names)
        self.reset_parameters()

    def _passes(self):
        """Each layer and direction, with the end of its weights' names."""
        for layer in range(self.num_layers):
            for end in ("", "_reverse") if self.bidirectional else ("",):
                yield layer, f"_l{layer}{end}"

    @property
    def _flat_weights(self):
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """For programs that call it: the weights need no common memory here."""

    def check_input(self, input, batch_sizes):
        if input.dtype != self.weight_ih_l0.dtype and not fl.is_autocast_enabled():
            raise ValueError(f"'input' is {input.dtype}, the weights are {self.weight_ih_l0.dtype}: convert "
                             f"one of them, with input.to({self.weight_ih_l0.dtype}) or "
                             f"model.to({input.dtype})")
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError("The last dimension of 'input' has to be input_size: Expected "
                               f"{self.input_size}, got {input.size(-1)}")

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.size())))

    def _state_shapes(self, batch):
        """Of each part of the state."""
        layers = self.num_layers * (2 if self.bidirectional else 1)
        shapes = [(layers, batch, self.proj_size or self.hidden_size)]
        return shapes + [(layers, batch, self.hidden_size)] if self.mode == "LSTM" else shapes

    def get_expected_hidden_size(self, input, batch_sizes):
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return self._state_shapes(batch)[0]

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        states = hidden if isinstance(hidden, tuple) else (hidden,)
        batch = self.get_expected_hidden_size(input, batch_sizes)[1]
        messages = (["Expected hidden[0] size {}, got {}", "Expected hidden[1] size {}, got {}"]
                    if self.mode == "LSTM" else ["Expected hidden size {}, got {}"])
        for state, shape, message in zip(states, self._state_shapes(batch), messages):
            self.check_hidden_size(state, shape, message)

    def permute_hidden(self, hx, permutation):
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return tuple(h.index_select(1, permutation) for h in hx)
        return hx.index_select(1, permutation)

    def forward(self, input, hx=None):
        """The outputs of the last layer at every step, and the last state of every layer and direction.

        input: (length, batch, input_size), (batch, length, input_size) if batch_first, (length, input_size),
        or a PackedSequence. The state starts at 0 unless given.
        """
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, back = input
            hx = self._first_state(data, int(batch_sizes[0]), hx, order)
            self.check_forward_args(data, hx, batch_sizes)
            output, state = self._all_layers(data, hx, batch_sizes)
            return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(state, back)
        if input.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: 'input' needs 2 or 3 dimensions, not {input.dim()}")
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        hx = self._batched_state(hx, batched)
        hx = self._first_state(input, input.size(batch_dim), hx, None)
        self.check_forward_args(input, hx, None)
        output, state = self._all_layers(input, hx, None)
        if batched:
            return output, state
        squeezed = tuple(s.squeeze(1) for s in state) if isinstance(state, tuple) else state.squeeze(1)
        return output.squeeze(batch_dim), squeezed

    def _batched_state(self, hx, batched):
        """The state with a batch dimension."""
        if hx is None:
            return None
        states = hx if isinstance(hx, tuple) else (hx,)
        rank = 3 if batched else 2
        for state in states:
            if state.dim() != rank:
                kind = "batched 3-D" if batched else "unbatched 2-D"
                parts = [s.dim() for s in states]
                got = f"({parts[0]}-D, {parts[1]}-D) tensors" if len(parts) > 1 else f"{parts[0]}-D tensor"
                raise RuntimeError(f"For {kind} input, hx {'and cx ' if len(parts) > 1 else ''}should also "
                                   f"be {rank}-D but got {got}")
        if batched:
            return hx
        return tuple(s.unsqueeze(1) for s in hx) if isinstance(hx, tuple) else hx.unsqueeze(1)

    def _first_state(self, input, batch, hx, order):
        if hx is not None:
            return self.permute_hidden(hx, order)
        zeros = tuple(fl.zeros(shape, dtype=input.dtype, device=input.device)
                      for shape in self._state_shapes(batch))
        return zeros if self.mode == "LSTM" else zeros[0]

    def _all_layers(self, x, hx, batch_sizes):
        """All outputs of the last layer and the last states: lstm, gru, rnn_tanh or rnn_relu."""
        network = getattr(fl, self.mode.lower())
        lstm = self.mode == "LSTM"
        how = (list(hx) if lstm else hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
               self.training, self.bidirectional)
        results = (network(x, *how, self.batch_first) if batch_sizes is None
                   else network(x, batch_sizes, *how))
        return results[0], results[1:] if lstm else results[1]

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
                    "bidirectional": False}
        for name, default in defaults.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


def _check_arguments(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size):
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise ValueError("'dropout' is the probability that an element becomes zero: a number from 0 to 1, "
                         f"not {dropout!r}")
    if dropout > 0 and num_layers == 1:
        warnings.warn(f"dropout={dropout} has no effect with num_layers={num_layers}: it acts between "
                      "layers, and not on the last one's output")
    if not isinstance(bias, bool):
        raise TypeError(f"bias should be of type bool, got: {type(bias).__name__}")
    if not isinstance(batch_first, bool):
        raise TypeError(f"batch_first should be of type bool, got: {type(batch_first).__name__}")
    if not isinstance(hidden_size, int):
        raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
    if input_size <= 0:
        raise ValueError("input_size must be greater than zero")
    if hidden_size <= 0:
        raise ValueError("hidden_size must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError(f"'proj_size' has to be positive, or 0 for no projection, not {proj_size}")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if proj_size and mode != "LSTM":
        raise ValueError(f"'proj_size' is for LSTM only, not for {mode}")


class RNN(RNNBase):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh); nonlinearity "relu" in tanh's place."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True,
                 batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, bias,
                         batch_first, dropout, bidirectional, 0, device, dtype)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory: c = f c + i g, h = o tanh(c), with gates i, f, g, o of input and h.

    proj_size: h is a projection of o tanh(c) to this size. The state is (h, c).
    """

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, proj_size, device, dtype)

    def get_expected_cell_size(self, input, batch_sizes):
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)


class GRU(RNNBase):
    """Gated recurrent unit: h = (1 - z) n + z h, with gates r and z, and n = tanh(W x + r (W h))."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, device=None, dtype=None):
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, 0, device, dtype)


class RNNCellBase(_Recurrent):
    """One step of a recurrent layer."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows, how = num_chunks * hidden_size, {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(fl.empty((rows, input_size), **how))
        self.weight_hh = Parameter(fl.empty((rows, hidden_size), **how))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(fl.empty(rows, **how)) if bias else None)
        self.reset_parameters()

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _step(self, mode, input, states):
        """The state after one step, from (batch, ...) or from single vectors."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: 'input' needs 1 or 2 dimensions, not {input.dim()}")
        for number, state in enumerate(states):
            if state is not None and state.dim() not in (1, 2):
                which = "hidden" if len(states) == 1 else f"hx[{number}]"
                raise ValueError(f"{name}: '{which}' needs 1 or 2 dimensions, not {state.dim()}")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if x.size(1) != self.input_size:
            raise RuntimeError(f"'input' has size {x.size(1)}, but input_size is {self.input_size}")
        full = []
        for state in states:
            if state is None:
                state = fl.zeros((x.size(0), self.hidden_size), dtype=x.dtype, device=x.device)
            elif not batched:
                state = state.unsqueeze(0)
            if state.size(0) != x.size(0):
                raise RuntimeError(f"'input' holds a batch of {x.size(0)}, the state one of {state.size(0)}")
            if state.size(1) != self.hidden_size:
                raise RuntimeError(f"the state has size {state.size(1)}, but hidden_size is "
                                   f"{self.hidden_size}")
            full.append(state)
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        new = getattr(fl, mode.lower() + "_cell")(x, full if mode == "LSTM" else full[0], *weights)
        new = new if mode == "LSTM" else (new,)
        return new if batched else tuple(state.squeeze(0) for state in new)


class RNNCell(RNNCellBase):
    """One step of an RNN."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity!r}; expected 'tanh' or 'relu'")
        return self._step("RNN_" + self.nonlinearity.upper(), input, (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM. The state is (h, c)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        return self._step("LSTM", input, (None, None) if hx is None else tuple(hx))


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._step("GRU", input, (hx,))[0]
