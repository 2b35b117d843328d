"""What recurrent networks compute, in NumPy, sequence by sequence and step by step: see references.py."""
import numpy as np

from references import reference


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# One step of one sequence or of a batch: from the products of the input and of the state.

def lstm_step(sums, c):
    """sums (..., 4 hidden) of both products."""
    i, f, g, o = np.split(sums, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x, gates, h):
    (x_r, x_z, x_n), (h_r, h_z, h_n) = np.split(x, 3, -1), np.split(gates, 3, -1)
    z, n = sigmoid(x_z + h_z), np.tanh(x_n + sigmoid(x_r + h_r) * h_n)
    return (1 - z) * n + z * h


def flat(gates):
    return gates.reshape(len(gates), gates.shape[1] * gates.shape[2])


reference("_lstm_step")(lambda gates, cx: lstm_step(flat(gates), cx))
reference("_gru_step")(lambda x, gates, hx: gru_step(flat(x), flat(gates), hx))


# One direction of one layer, rows packed.

def places(batch_sizes, sequence):
    """The rows of a packed tensor that belong to a sequence, in order of time."""
    starts = np.cumsum([0, *batch_sizes[:-1]])
    return [int(start) + sequence for start, size in zip(starts, batch_sizes) if sequence < size]


def by_sequence(step, x, states, batch_sizes, reverse, extra):
    """step(x of a row, states) -> (states, what else to keep). All states and extras, packed; last states."""
    packed = [np.zeros((len(x), s.shape[1])) for s in states]
    kept = np.zeros((len(x), extra)) if extra else None
    last = [np.array(s) for s in states]
    for sequence in range(batch_sizes[0]):
        state = tuple(s[sequence] for s in states)
        rows = places(batch_sizes, sequence)
        for row in rows[::-1] if reverse else rows:
            state, more = step(x[row], state)
            for p, s in zip(packed, state):
                p[row] = s
            if extra:
                kept[row] = more
        for end, s in zip(last, state):
            end[sequence] = s
    return packed, last, kept


@reference("_lstm_layer")
def lstm_layer(x, hx, cx, w_hh, w_hr, batch_sizes, reverse):
    def step(row, state):
        sums = row + w_hh @ state[0]
        h, c = lstm_step(sums, state[1])
        return (h if w_hr is None else w_hr @ h, c), sums

    (h, c), (hy, cy), sums = by_sequence(step, x, (hx, cx), batch_sizes, reverse, x.shape[1])
    return h, hy, cy, sums.reshape(len(x), 4, -1), c


@reference("_gru_layer")
def gru_layer(x, hx, w_hh, b_hh, batch_sizes, reverse):
    def step(row, state):
        gates = w_hh @ state[0] + (0 if b_hh is None else b_hh)
        return (gru_step(row, gates, state[0]),), gates

    (h,), (hy,), gates = by_sequence(step, x, (hx,), batch_sizes, reverse, x.shape[1])
    return h, hy, gates.reshape(len(x), 3, -1)


@reference("_rnn_layer")
def rnn_layer(x, hx, w_hh, batch_sizes, reverse, relu):
    def step(row, state):
        h = row + w_hh @ state[0]
        return (np.maximum(h, 0) if relu else np.tanh(h),), None

    (h,), (hy,), _ = by_sequence(step, x, (hx,), batch_sizes, reverse, 0)
    return h, hy


# Networks: layers and directions.

def one_direction(kind, x, states, params, biases, batch_sizes, reverse):
    w_ih, w_hh, *rest = params
    b_ih, b_hh = rest[:2] if biases else (0, 0)
    x = x @ w_ih.T + b_ih
    if kind == "lstm":
        w_hr = params[-1] if states[0].shape[-1] != states[1].shape[-1] else None
        return lstm_layer(x + b_hh, *states, w_hh, w_hr, batch_sizes, reverse)[:3]
    if kind == "gru":
        return gru_layer(x, *states, w_hh, b_hh, batch_sizes, reverse)[:2]
    return rnn_layer(x + b_hh, *states, w_hh, batch_sizes, reverse, kind == "rnn_relu")


def network(kind, x, batch_sizes, states, params, biases, layers, bidirectional):
    ends, directions = [], 2 if bidirectional else 1
    each = len(params) // (layers * directions)
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            output, *end = one_direction(kind, x, [s[k] for s in states], params[k * each:(k + 1) * each],
                                         biases, batch_sizes, direction == 1)
            outputs.append(output)
            ends.append(end)
        x = np.concatenate(outputs, -1)
    return x, *(np.stack(e) for e in zip(*ends))


def padded(kind):
    def run(x, hx, params, biases, layers, dropout, train, bidirectional, batch_first):
        x = x.swapaxes(0, 1) if batch_first else x
        states = hx if kind == "lstm" else (hx,)
        y, *end = network(kind, x.reshape(-1, x.shape[2]), [x.shape[1]] * len(x), states, params, biases,
                          layers, bidirectional)
        y = y.reshape(*x.shape[:2], -1)
        return y.swapaxes(0, 1) if batch_first else y, *end

    return run


def packed(kind):
    def run(x, batch_sizes, hx, params, biases, layers, dropout, train, bidirectional):
        states = hx if kind == "lstm" else (hx,)
        return network(kind, x, batch_sizes, states, params, biases, layers, bidirectional)

    return run


for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
    reference(f"{kind}.input")(padded(kind))
    reference(f"{kind}.data")(packed(kind))


# Cells.

def products(x, h, w_ih, w_hh, b_ih=None, b_hh=None):
    return x @ w_ih.T + (0 if b_ih is None else b_ih), h @ w_hh.T + (0 if b_hh is None else b_hh)


reference("lstm_cell")(lambda x, hx, *w: lstm_step(sum(products(x, hx[0], *w)), hx[1]))
reference("gru_cell")(lambda x, hx, *w: gru_step(*products(x, hx, *w), hx))
reference("rnn_tanh_cell")(lambda x, hx, *w: np.tanh(sum(products(x, hx, *w))))
reference("rnn_relu_cell")(lambda x, hx, *w: np.maximum(sum(products(x, hx, *w)), 0))
