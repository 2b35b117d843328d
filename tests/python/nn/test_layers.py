"""Layers against NumPy and closed forms."""
import math

import numpy as np
import pytest
from scipy import special

import flambeau as fl
from flambeau import nn
from flambeau.nn.utils import rnn


@pytest.fixture(autouse=True)
def seed():
    fl.manual_seed(0)


def check(got, expected, tolerance=1e-5):
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def arrays(module):
    return {name: p.detach().numpy() for name, p in module.named_parameters()}


# --- recurrent ---
def lstm(x, w, suffix, h, c):
    out = []
    for row in x:
        i, f, g, o = np.split(w["weight_ih" + suffix] @ row + w["bias_ih" + suffix]
                              + w["weight_hh" + suffix] @ h + w["bias_hh" + suffix], 4)
        c = special.expit(f) * c + special.expit(i) * np.tanh(g)
        h = special.expit(o) * np.tanh(c)
        if "weight_hr" + suffix in w:
            h = w["weight_hr" + suffix] @ h
        out.append(h)
    return np.array(out), h, c


def test_lstm():
    net = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    x = fl.randn(5, 2, 3)
    y, (h, c) = net(x)
    w = arrays(net)
    for k in range(2):
        rows = x.numpy()[:, k]
        for layer in range(2):
            there, h0, _ = lstm(rows, w, f"_l{layer}", np.zeros(4), np.zeros(4))
            back, h1, c1 = lstm(rows[::-1], w, f"_l{layer}_reverse", np.zeros(4), np.zeros(4))
            rows = np.concatenate([there, back[::-1]], 1)
            check(h[2 * layer, k], h0)
            check(h[2 * layer + 1, k], h1)
        check(y[:, k], rows)
        check(c[3, k], c1)


def test_lstm_with_projection():
    net = nn.LSTM(3, 4, proj_size=2)
    y, (h, c) = net(fl.randn(5, 3))
    assert y.shape == (5, 2) and h.shape == (1, 2) and c.shape == (1, 4)
    x = fl.randn(5, 3)
    expected, _, _ = lstm(x.numpy(), arrays(net), "_l0", np.zeros(2), np.zeros(4))
    check(net(x)[0], expected)


def test_gru_and_rnn():
    net, x = nn.GRU(3, 4), fl.randn(5, 3)
    w, h = arrays(net), np.zeros(4)
    for row in x.numpy():
        a = np.split(w["weight_ih_l0"] @ row + w["bias_ih_l0"], 3)
        b = np.split(w["weight_hh_l0"] @ h + w["bias_hh_l0"], 3)
        r, z = special.expit(a[0] + b[0]), special.expit(a[1] + b[1])
        h = (1 - z) * np.tanh(a[2] + r * b[2]) + z * h
    check(net(x)[1][0], h)
    net = nn.RNN(3, 4, nonlinearity="relu", bias=False)
    w, h = arrays(net), np.zeros(4)
    for row in x.numpy():
        h = np.maximum(w["weight_ih_l0"] @ row + w["weight_hh_l0"] @ h, 0)
    check(net(x)[1][0], h)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_cells_are_one_step(kind):
    net, cell = kind(3, 4), getattr(nn, kind.__name__ + "Cell")(3, 4)
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in net.state_dict().items()})
    x = fl.randn(1, 2, 3)
    y, _ = net(x)
    one = cell(x[0])
    check(y[0], (one[0] if kind is nn.LSTM else one).detach().numpy())
    check(cell(x[0, 0])[0] if kind is nn.LSTM else cell(x[0, 0]), y[0, 0].detach().numpy())


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("order", [True, False])
def test_packed_sequences_are_each_by_itself(kind, order):
    net = kind(3, 4, num_layers=2, bidirectional=True)
    sequences = [fl.randn(n, 3) for n in ((5, 3, 3, 1) if order else (3, 1, 5, 3))]
    packed, state = net(rnn.pack_sequence(sequences, enforce_sorted=order))
    padded, lengths = rnn.pad_packed_sequence(packed)
    assert lengths.tolist() == [len(s) for s in sequences]
    for k, s in enumerate(sequences):
        y, alone = net(s)
        check(padded[:len(s), k], y.detach().numpy())
        pairs = zip(state, alone) if kind is nn.LSTM else [(state, alone)]
        for all_of_them, one in pairs:
            check(all_of_them[:, k], one.detach().numpy())


def test_recurrent_errors():
    net = nn.LSTM(3, 4)
    with pytest.raises(RuntimeError, match="Expected 3, got 2"):
        net(fl.randn(5, 2, 2))
    with pytest.raises(RuntimeError, match=r"Expected hidden\[0\] size \(1, 2, 4\)"):
        net(fl.randn(5, 2, 3), (fl.zeros(1, 1, 4), fl.zeros(1, 2, 4)))
    with pytest.raises(ValueError, match="'proj_size' is for LSTM only"):
        nn.RNNBase("GRU", 3, 4, proj_size=2)


def test_sequences():
    packed = rnn.pack_padded_sequence(fl.arange(8).view(2, 4), [4, 2], batch_first=True)
    assert packed.data.tolist() == [0, 4, 1, 5, 2, 3] and packed.batch_sizes.tolist() == [2, 2, 1, 1]
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=5)
    assert padded.tolist() == [[0, 1, 2, 3, -1], [4, 5, -1, -1, -1]] and lengths.tolist() == [4, 2]
    parts = [fl.tensor([1, 2]), fl.tensor([3])]
    assert rnn.pad_sequence(parts, batch_first=True, padding_side="left").tolist() == [[1, 2], [0, 3]]
    assert [p.tolist() for p in rnn.unpack_sequence(rnn.pack_sequence(parts))] == [[1, 2], [3]]
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        rnn.pack_padded_sequence(fl.zeros(3, 2), [1, 3])


# --- attention ---
def attention(x, w, heads, mask=None):
    q, k, v = np.split(x @ w["in_proj_weight"].T + w["in_proj_bias"], 3, -1)
    out, all_weights = [], []
    for q, k, v in zip(*(np.split(t, heads, -1) for t in (q, k, v))):
        scores = q @ k.T / math.sqrt(q.shape[-1])
        p = special.softmax(scores if mask is None else np.where(mask, -np.inf, scores), -1)
        all_weights.append(p)
        out.append(p @ v)
    return np.concatenate(out, -1) @ w["out_proj.weight"].T + w["out_proj.bias"], np.mean(all_weights, 0)


@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention(need_weights):
    net, x = nn.MultiheadAttention(6, 2, batch_first=True), fl.randn(3, 5, 6)
    causal = np.triu(np.ones((5, 5), bool), 1)
    y, p = net(x, x, x, attn_mask=fl.from_numpy(causal), need_weights=need_weights)
    for k in range(3):
        expected, weights = attention(x.numpy()[k], arrays(net), 2, causal)
        check(y[k], expected)
        if need_weights:
            check(p[k], weights)
    assert need_weights or p is None
    padding = fl.zeros(3, 5, dtype=fl.bool)
    padding[1, 3:] = True
    y, _ = net(x, x, x, key_padding_mask=padding, need_weights=need_weights)
    check(y[1, :3], attention(x.numpy()[1, :3], arrays(net), 2)[0])


def test_attention_with_other_sizes():
    net = nn.MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True, add_zero_attn=True)
    y, p = net(fl.randn(2, 4), fl.randn(6, 3), fl.randn(6, 5), average_attn_weights=False)
    assert y.shape == (2, 4) and p.shape == (2, 2, 8)
    check(p.sum(-1), np.ones((2, 2)))
    assert sorted(net.state_dict()) == ["bias_k", "bias_v", "in_proj_bias", "k_proj_weight", "out_proj.bias",
                                        "out_proj.weight", "q_proj_weight", "v_proj_weight"]


def test_transformer_does_not_look_ahead():
    net = nn.Transformer(8, 2, 1, 2, 16, dropout=0.0, batch_first=True)
    source, target = fl.randn(2, 4, 8), fl.randn(2, 5, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    y = net(source, target, tgt_mask=mask)
    target[:, 3:] += 1
    changed = net(source, target, tgt_mask=mask)
    check(changed[:, :3], y[:, :3].detach().numpy())
    assert (changed[:, 3:] - y[:, 3:]).abs().max().item() > 1e-3
    with pytest.raises(RuntimeError, match="differ in batch size"):
        net(source[:1], target)


@pytest.mark.parametrize("norm_first", [True, False])
def test_encoder_layer(norm_first):
    net = nn.TransformerEncoderLayer(6, 2, 10, dropout=0.0, batch_first=True, norm_first=norm_first)
    x = fl.randn(2, 3, 6)
    fed = lambda t: net.linear2(fl.relu(net.linear1(t)))  # noqa: E731
    if norm_first:
        a = net.norm1(x)
        a = x + net.self_attn(a, a, a)[0]
        expected = a + fed(net.norm2(a))
    else:
        a = net.norm1(x + net.self_attn(x, x, x)[0])
        expected = net.norm2(a + fed(a))
    check(net(x), expected.detach().numpy())


# --- normalisation ---
def test_batch_norm():
    net, x = nn.BatchNorm2d(3, momentum=0.3), fl.randn(4, 3, 5, 2) * 2 + 1
    n = x.numpy()
    mean, var = n.mean((0, 2, 3)), n.var((0, 2, 3))
    check(net(x), (n - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5))
    check(net.running_mean, 0.3 * mean)
    check(net.running_var, 0.7 + 0.3 * n.var((0, 2, 3), ddof=1))
    assert net.num_batches_tracked.item() == 1
    net.eval()
    running = net.running_mean.numpy(), net.running_var.numpy()
    check(net(x), (n - running[0][:, None, None]) / np.sqrt(running[1][:, None, None] + 1e-5))
    average = nn.BatchNorm1d(3, momentum=None)
    for value in (1, 2):
        average(fl.full((4, 3), float(value)))
    check(average.running_mean, [1.5] * 3)
    with pytest.raises(ValueError, match="expected 4D input"):
        net(fl.ones(2, 3))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.BatchNorm1d(3)(fl.ones(1, 3))


def test_other_norms():
    x = fl.randn(2, 6, 5)
    n = x.numpy()

    def standard(a, axes):
        return (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + 1e-5)

    check(nn.LayerNorm((6, 5))(x), standard(n, (1, 2)))
    check(nn.InstanceNorm1d(6)(x), standard(n, 2))
    check(nn.InstanceNorm1d(6)(x[0]), standard(n[0], 1))
    check(nn.GroupNorm(2, 6)(x), standard(n.reshape(2, 2, 15), 2).reshape(n.shape))
    check(nn.RMSNorm(5, eps=1e-3)(x), n / np.sqrt((n ** 2).mean(-1, keepdims=True) + 1e-3))
    sync = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(6)))
    assert type(sync[0]) is nn.SyncBatchNorm
    check(sync(x), standard(n, (0, 2)))


# --- the rest ---
def test_transposed_convolution_reaches_sizes():
    net = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    assert net(fl.ones(1, 2, 4, 4)).shape == (1, 3, 7, 7)
    assert net(fl.ones(1, 2, 4, 4), output_size=(8, 7)).shape == (1, 3, 8, 7)
    with pytest.raises(ValueError, match="cannot be reached"):
        net(fl.ones(1, 2, 4, 4), output_size=(9, 9))


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_padding_modes_of_convolutions(mode):
    net, x = nn.Conv1d(2, 3, 3, padding="same", padding_mode=mode), fl.randn(1, 2, 6)
    padded = nn.functional.pad(x, (1, 1), "constant" if mode == "zeros" else mode)
    check(net(x), nn.functional.conv1d(padded, net.weight, net.bias).detach().numpy())


def test_adaptive_log_softmax():
    net, x = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], div_value=2.0), fl.randn(5, 8)
    full = net.log_prob(x)
    check(full.exp().sum(1), np.ones(5))
    target = fl.tensor([0, 4, 9, 2, 5])
    output, loss = net(x, target)
    check(output, full.gather(1, target.unsqueeze(1)).squeeze(1).detach().numpy())
    check(loss, -output.mean().item())
    assert net.predict(x).tolist() == full.argmax(1).tolist()
    with pytest.raises(RuntimeError, match="classes go from 0"):
        net(x, target + 1)


def test_embedding():
    net = nn.Embedding(4, 3, padding_idx=-1)
    assert net.padding_idx == 3 and net.weight[3].tolist() == [0, 0, 0]
    net(fl.tensor([3, 1])).sum().backward()
    assert net.weight.grad.sum(1).tolist() == [0, 3, 0, 0]
    fixed = nn.Embedding.from_pretrained(fl.eye(2))
    assert not fixed.weight.requires_grad and fixed(fl.tensor([1])).tolist() == [[0, 1]]


def test_shapes_of_small_layers():
    x = fl.randn(2, 4, 6, 6)
    for layer, shape in [
            (nn.Flatten(), (2, 144)), (nn.Unflatten(1, (2, 2)), (2, 2, 2, 6, 6)),
            (nn.PixelShuffle(2), (2, 1, 12, 12)), (nn.PixelUnshuffle(2), (2, 16, 3, 3)),
            (nn.ChannelShuffle(2), x.shape), (nn.Upsample(scale_factor=2), (2, 4, 12, 12)),
            (nn.ZeroPad2d(1), (2, 4, 8, 8)), (nn.CircularPad2d((1, 0, 2, 0)), (2, 4, 8, 7)),
            (nn.MaxPool2d(2), (2, 4, 3, 3)), (nn.AvgPool2d(3, 1, 1), x.shape),
            (nn.AdaptiveAvgPool2d((None, 1)), (2, 4, 6, 1)), (nn.LPPool2d(2, 2), (2, 4, 3, 3)),
            (nn.Softmax2d(), x.shape), (nn.GLU(1), (2, 2, 6, 6)), (nn.PReLU(4), x.shape),
            (nn.LocalResponseNorm(2), x.shape), (nn.Unfold(3), (2, 36, 16)),
            (nn.UpsamplingBilinear2d(size=3), (2, 4, 3, 3)), (nn.Identity(1, a=2), x.shape)]:
        assert layer(x).shape == shape, layer


def test_losses_are_their_functions():
    x, y = fl.randn(3, 4), fl.rand(3, 4)
    F = nn.functional
    labels = fl.tensor([0, 3, 1])
    for loss, function in [
            (nn.MSELoss(reduction="sum"), lambda: F.mse_loss(x, y, reduction="sum")),
            (nn.HuberLoss(delta=0.5), lambda: F.huber_loss(x, y, delta=0.5)),
            (nn.BCEWithLogitsLoss(pos_weight=fl.ones(4) * 2), lambda: F.binary_cross_entropy_with_logits(
                x, y, pos_weight=fl.ones(4) * 2)),
            (nn.MultiLabelSoftMarginLoss(), lambda: F.multilabel_soft_margin_loss(x, y))]:
        check(loss(x, y), function().item())
    check(nn.CrossEntropyLoss(label_smoothing=0.1)(x, labels),
          F.cross_entropy(x, labels, label_smoothing=0.1).item())
    head = nn.LinearCrossEntropyLoss(4, 5)
    check(head(x, labels), F.cross_entropy(head.linear(x), labels).item())
