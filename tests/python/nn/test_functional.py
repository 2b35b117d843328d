"""Functions of layers against NumPy, SciPy and closed forms."""
import itertools
import math

import numpy as np
import pytest
from scipy import special

import flambeau as fl
import flambeau.nn.functional as F

RANDOM = np.random.default_rng(0)


def tensor(*shape, low=-2.0, high=2.0, dtype="float64"):
    return fl.from_numpy(RANDOM.uniform(low, high, shape).astype(dtype))


def check(got, expected, tolerance=1e-9):
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def check_gradient(f, *inputs, tolerance=1e-5):
    """The gradient against differences along one random direction."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    f(*leaves).sum().backward()
    for k, leaf in enumerate(leaves):
        direction = tensor(*leaf.shape, low=-1, high=1)
        step = 1e-6

        def at(t):
            moved = [x.detach() for x in inputs]
            moved[k] = moved[k] + direction * t
            return f(*moved).sum().item()

        assert abs((at(step) - at(-step)) / (2 * step) - (leaf.grad * direction).sum().item()) < tolerance


# --- activations ---
ACTIVATIONS = {
    "relu6": lambda x: np.clip(x, 0, 6), "softsign": lambda x: x / (1 + abs(x)),
    "tanhshrink": lambda x: x - np.tanh(x),
    "logsigmoid": lambda x: -np.log1p(np.exp(-x)), "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "silu": lambda x: x * special.expit(x), "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "gelu": lambda x: x * special.ndtr(x), "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardtanh": lambda x: np.clip(x, -1, 1), "softplus": lambda x: np.log1p(np.exp(x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    x = tensor(3, 4)
    check(getattr(F, name)(x), ACTIVATIONS[name](x.numpy()))


def test_in_place_forms():
    for name in ("relu", "elu", "selu", "leaky_relu", "hardtanh", "celu", "silu", "mish", "hardswish",
                 "relu6"):
        x = tensor(5)
        expected = getattr(F, name)(x)
        assert getattr(F, name)(x, inplace=True) is x
        check(x, expected.numpy())
        if hasattr(F, name + "_"):
            y = tensor(5)
            assert getattr(F, name + "_")(y) is y


def test_rrelu():
    x = tensor(1000, low=-1, high=0)
    slopes = (F.rrelu(x, 0.2, 0.4, training=True) / x).numpy()
    assert slopes.min() >= 0.2 and slopes.max() <= 0.4 and slopes.std() > 0.03
    check(F.rrelu(x, 0.2, 0.4), x.numpy() * 0.3)
    with pytest.raises(RuntimeError, match="less than or equal"):
        F.rrelu(x, 0.4, 0.2)


def test_softmax_family():
    x = tensor(2, 5)
    p = special.softmax(x.numpy(), 1)
    check(F.softmax(x, 1), p)
    check(F.log_softmax(x, 1), np.log(p))
    check(F.softmin(x, 1), special.softmax(-x.numpy(), 1))
    assert F.softmax(x.float(), 1, dtype=fl.float64).dtype is fl.float64
    hard = F.gumbel_softmax(x, hard=True, dim=1)
    check(hard.sum(1), np.ones(2))
    assert set(np.round(hard.numpy(), 6).ravel()) == {0, 1}


# --- losses ---
def test_margin_losses():
    x, target = tensor(4, 5), fl.tensor([0, 3, 4, 1])
    n = x.numpy()
    for p in (1, 2):
        rows = [sum(max(0, 1 - n[i, t] + n[i, j]) ** p for j in range(5) if j != t) / 5
                for i, t in enumerate(target.tolist())]
        check(F.multi_margin_loss(x, target, p=p, reduction="none"), rows)
    check_gradient(lambda x: F.multi_margin_loss(x, target), x)
    labels = fl.tensor([[3, 0, -1, 1, 2], [1, -1, 0, 0, 0]])
    x = tensor(2, 5)
    n = x.numpy()
    rows = []
    for i, row in enumerate(labels.tolist()):
        mine = list(itertools.takewhile(lambda label: label >= 0, row))
        rows.append(sum(max(0, 1 - n[i, t] + n[i, j]) for t in mine for j in range(5) if j not in mine) / 5)
    check(F.multilabel_margin_loss(x, labels, reduction="none"), rows)
    check_gradient(lambda x: F.multilabel_margin_loss(x, labels), x)


def test_likelihood_losses():
    x, y, var = tensor(3, 4), tensor(3, 4), tensor(3, 4, low=0.5)
    check(F.gaussian_nll_loss(x, y, var, full=True, reduction="none"),
          0.5 * (np.log(var.numpy()) + (x - y).numpy() ** 2 / var.numpy()) + 0.5 * math.log(2 * math.pi))
    t = tensor(3, 4, low=0, high=1)
    s = special.expit(x.numpy())
    check(F.multilabel_soft_margin_loss(x, t, reduction="none"),
          -(t.numpy() * np.log(s) + (1 - t.numpy()) * np.log(1 - s)).mean(1))
    p = F.softmax(y, 1)
    check(F.kl_div(F.log_softmax(x, 1), p, reduction="batchmean"),
          (p.numpy() * (np.log(p.numpy()) - np.log(special.softmax(x.numpy(), 1)))).sum() / 3)
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        F.mse_loss(x, y, reduction="all")
    with pytest.raises(ValueError, match="negative entry"):
        F.gaussian_nll_loss(x, y, -var)


def alignments(log_probs, target, blank=0):
    """The log-probability of a target: the sum over every path that collapses to it."""
    steps, classes = log_probs.shape
    total = -np.inf
    for path in itertools.product(range(classes), repeat=steps):
        collapsed = [k for k, _ in itertools.groupby(path) if k != blank]
        if collapsed == target:
            total = np.logaddexp(total, sum(log_probs[t, k] for t, k in enumerate(path)))
    return total


def test_ctc_loss():
    log_probs = F.log_softmax(tensor(5, 3, 3), 2)
    targets, lengths, counts = fl.tensor([[1, 2], [1, 1], [2, 0]]), [5, 4, 3], [2, 2, 1]
    expected = [-alignments(log_probs.numpy()[:t, k], targets.tolist()[k][:n])
                for k, (t, n) in enumerate(zip(lengths, counts))]
    check(F.ctc_loss(log_probs, targets, lengths, counts, reduction="none"), expected)
    flat = fl.tensor([1, 2, 1, 1, 2])
    check(F.ctc_loss(log_probs, flat, fl.tensor(lengths), fl.tensor(counts), reduction="sum"), sum(expected))
    check(F.ctc_loss(log_probs, targets, lengths, counts), np.mean(np.array(expected) / [2, 2, 1]))
    assert F.ctc_loss(log_probs, targets, [1, 4, 3], counts, reduction="none")[0].item() == math.inf
    assert F.ctc_loss(log_probs, targets, [1, 4, 3], counts, reduction="none",
                      zero_infinity=True)[0].item() == 0
    check_gradient(lambda x: F.ctc_loss(F.log_softmax(x, 2), targets, lengths, counts), tensor(5, 3, 3))


# --- pooling ---
def windows(n, m):
    return [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


def test_adaptive_max_pool():
    x = tensor(2, 3, 7, 5)
    got, indices = F.adaptive_max_pool2d(x, (3, 4), return_indices=True)
    expected = np.array([[[[image[a:b, c:d].max() for c, d in windows(5, 4)] for a, b in windows(7, 3)]
                          for image in batch] for batch in x.numpy()])
    check(got, expected)
    check(x.flatten(2).gather(2, indices.flatten(2)).view(*got.shape), expected)
    check(F.adaptive_max_pool1d(x[0], 2),
          np.stack([x[0].numpy()[..., a:b].max(-1) for a, b in windows(5, 2)], -1))
    assert F.adaptive_max_pool3d(x, (None, 2, 2)).shape == (2, 3, 2, 2)
    check_gradient(lambda x: F.adaptive_max_pool2d(x, 3) ** 2, x)


def test_max_unpool():
    x = tensor(1, 2, 4, 6, low=1)
    pooled, indices = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(pooled, indices, 2)
    assert back.shape == x.shape and (back != 0).sum().item() == pooled.numel()
    check(F.max_pool2d(back, 2), pooled.numpy())
    line, where = F.max_pool1d(x[0], 2, return_indices=True)
    assert F.max_unpool1d(line, where, 2, output_size=(4, 7)[1:]).shape == (2, 4, 7)
    volume, where = F.max_pool3d(x, 2, return_indices=True)
    assert F.max_unpool3d(volume, where, 2).shape == x.shape
    with pytest.raises(ValueError, match="'output_size' must lie strictly between"):
        F.max_unpool2d(pooled, indices, 2, output_size=(9, 9))


def test_fractional_max_pool():
    x = tensor(2, 3, 9, 8)
    got, indices = F.fractional_max_pool2d(x, 2, output_size=(4, 5), return_indices=True)
    assert got.shape == (2, 3, 4, 5)
    check(x.flatten(2).gather(2, indices.flatten(2)).view(*got.shape), got.numpy())
    assert F.fractional_max_pool3d(x, 2, output_ratio=0.5).shape == (2, 1, 4, 4)
    with pytest.raises(RuntimeError, match="too large"):
        F.fractional_max_pool2d(x, 6, output_size=5)


def test_lp_pool():
    x = tensor(1, 2, 6, low=0.1)
    n = x.numpy()
    check(F.lp_pool1d(x, 3, 2), (n[..., ::2] ** 3 + n[..., 1::2] ** 3) ** (1 / 3))


# --- images ---
def interpolated(line, out, align_corners):
    n = len(line)
    y = np.arange(out)
    at = y * (n - 1) / (out - 1) if align_corners else np.clip((y + 0.5) * n / out - 0.5, 0, None)
    return np.interp(at, np.arange(n), line)


@pytest.mark.parametrize("corners", [False, True])
def test_linear_interpolation(corners):
    x = tensor(1, 1, 5)
    check(F.interpolate(x, 8, mode="linear", align_corners=corners)[0, 0],
          interpolated(x.numpy()[0, 0], 8, corners))
    image = tensor(1, 1, 4, 5)
    rows = np.stack([interpolated(r, 7, corners) for r in image.numpy()[0, 0]])
    both = np.stack([interpolated(c, 6, corners) for c in rows.T]).T
    check(F.interpolate(image, (6, 7), mode="bilinear", align_corners=corners)[0, 0], both)
    volume = image.expand(1, 1, 3, 4, 5)
    check(F.interpolate(volume, (2, 6, 7), mode="trilinear", align_corners=corners)[0, 0, 1], both)


def test_other_interpolation():
    x = tensor(1, 1, 6)
    check(F.interpolate(x, 4)[0, 0], x.numpy()[0, 0][[0, 1, 3, 4]])
    check(F.interpolate(x, 4, mode="nearest-exact")[0, 0], x.numpy()[0, 0][[0, 2, 3, 5]])
    check(F.interpolate(x, scale_factor=2)[0, 0], np.repeat(x.numpy()[0, 0], 2))
    check(F.interpolate(x, 3, mode="area")[0, 0], x.numpy()[0, 0].reshape(3, 2).mean(1))
    line = fl.arange(10, dtype=fl.float64).expand(1, 1, 10, 10)

    def keys(d, a=-0.75):
        d = abs(d)
        return (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1 if d <= 1 else a * (d ** 3 - 5 * d ** 2 + 8 * d - 4)

    got = F.interpolate(line, (20, 20), mode="bicubic")[0, 0, 10]
    places = [(k + 0.5) / 2 - 0.5 for k in range(20)]
    check(got, [sum(keys(at - j) * min(max(j, 0), 9) for j in range(math.floor(at) - 1, math.floor(at) + 3))
                for at in places])
    smaller = F.interpolate(line, (5, 5), mode="bilinear", antialias=True)[0, 0, 2]
    check(smaller[1:4], [2.5, 4.5, 6.5])
    with pytest.raises(ValueError, match="'align_corners' goes with"):
        F.interpolate(x, 4, align_corners=True)
    with pytest.raises(ValueError, match="'size' and 'scale_factor' are both given"):
        F.interpolate(x, 4, 2)


def test_grid_sample():
    x = tensor(1, 2, 4, 5)
    for corners in (False, True):
        same = F.affine_grid(fl.tensor([[[1.0, 0, 0], [0, 1.0, 0]]], dtype=fl.float64), x.shape,
                             align_corners=corners)
        for mode in ("bilinear", "nearest", "bicubic"):
            check(F.grid_sample(x, same, mode, align_corners=corners), x.numpy())
        mirrored = F.affine_grid(fl.tensor([[[-1.0, 0, 0], [0, 1.0, 0]]], dtype=fl.float64), x.shape,
                                 align_corners=corners)
        check(F.grid_sample(x, mirrored, align_corners=corners), x.numpy()[..., ::-1])
    outside = fl.full((1, 1, 1, 2), 3.0, dtype=fl.float64)
    assert F.grid_sample(x, outside, align_corners=False).abs().sum().item() == 0
    check(F.grid_sample(x, outside, padding_mode="border", align_corners=False)[0, :, 0, 0],
          x.numpy()[0, :, -1, -1])
    volume = tensor(1, 1, 3, 4, 2)
    same = F.affine_grid(fl.eye(3, 4, dtype=fl.float64)[None], volume.shape, align_corners=False)
    check(F.grid_sample(volume, same, align_corners=False), volume.numpy())
    check_gradient(lambda x, g: F.grid_sample(x, g, padding_mode="reflection", align_corners=False), x,
                   tensor(1, 3, 2, 2, low=-1.4, high=1.4))


def test_padding():
    x = tensor(1, 2, 4)
    for mode, name in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        check(F.pad(x, (2, 1), mode), np.pad(x.numpy(), ((0, 0), (0, 0), (2, 1)), name))
    check(F.pad(x, (1, 0, 0, 2), value=5), np.pad(x.numpy(), ((0, 0), (0, 2), (1, 0)), constant_values=5))


def test_fold_is_the_transpose_of_unfold():
    x, y = tensor(2, 3, 5, 6), tensor(2, 12, 20)
    columns = F.unfold(x, 2)
    assert columns.shape == (2, 12, 20)
    assert abs((columns * y).sum().item() - (x * F.fold(y, (5, 6), 2)).sum().item()) < 1e-9


# --- embeddings, distances ---
def test_embedding_bag():
    table, indices, offsets = tensor(5, 3), fl.tensor([1, 4, 0, 2, 2, 3]), fl.tensor([0, 2, 2, 5])
    n, bags = table.numpy(), [[1, 4], [], [0, 2, 2], [3]]
    check(F.embedding_bag(indices, table, offsets, mode="sum"), [n[b].sum(0) for b in bags])
    check(F.embedding_bag(indices, table, offsets), [n[b].mean(0) if b else np.zeros(3) for b in bags])
    check(F.embedding_bag(indices, table, offsets, mode="max"),
          [n[b].max(0) if b else np.zeros(3) for b in bags])
    w = tensor(6)
    check(F.embedding_bag(indices.view(2, 3), table, mode="sum", per_sample_weights=w.view(2, 3)),
          [(n[b] * w.numpy()[s][:, None]).sum(0)
           for b, s in (([1, 4, 0], slice(3)), ([2, 2, 3], slice(3, 6)))])
    check(F.embedding_bag(indices.view(2, 3), table, mode="mean", padding_idx=2),
          [n[[1, 4, 0]].mean(0), n[3]])
    for mode in ("sum", "mean", "max"):
        check_gradient(lambda t: F.embedding_bag(indices, t, offsets, mode=mode) ** 2, table)
    with pytest.raises(ValueError, match="'offsets' must be None"):
        F.embedding_bag(indices.view(2, 3), table, offsets)


def test_embedding_shortens_rows():
    table = fl.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    F.embedding(fl.tensor([0, 1]), table, max_norm=1.0)
    np.testing.assert_allclose(table.numpy(), [[0.6, 0.8], [0.3, 0.4], [6, 8]], rtol=1e-5)


def test_distances():
    x = tensor(5, 3)
    n = x.numpy()
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    check(F.pdist(x), [np.linalg.norm(n[i] - n[j]) for i, j in pairs])
    check(F.pdist(x, 1), [abs(n[i] - n[j]).sum() for i, j in pairs])
    check(F.normalize(x), n / np.linalg.norm(n, axis=1, keepdims=True))
    check_gradient(lambda x: F.pdist(x), x)
    w, y = tensor(2, 3, 4), tensor(5, 4)
    check(F.bilinear(x, y, w), np.einsum("bi,oij,bj->bo", n, w.numpy(), y.numpy()))


def test_local_response_norm():
    x = tensor(1, 5, 2)
    n = x.numpy()
    padded = np.pad(n ** 2, ((0, 0), (1, 1), (0, 0)))
    mean = sum(padded[:, k:k + 5] for k in range(3)) / 3
    check(F.local_response_norm(x, 3, alpha=0.1, beta=0.5, k=2), n / (2 + 0.1 * mean) ** 0.5)


# --- dropout ---
def test_dropout_keeps_the_mean():
    fl.manual_seed(0)
    x = fl.ones(4, 1000, 8)
    for drop in (F.dropout, F.dropout1d, F.dropout2d):
        y = drop(x, 0.25)
        assert abs(y.mean().item() - 1) < 0.05
        assert set(np.round(np.unique(y.numpy()), 5)) == {0, np.float32(1.33333)}
        assert drop(x, 0.25, training=False).equal(x)
    channels = F.dropout1d(x, 0.5).numpy()
    assert (channels.min(-1) == channels.max(-1)).all()
    noise = fl.randn(100000)
    y = F.alpha_dropout(noise, 0.3, training=True)
    assert abs(y.mean().item()) < 0.02 and abs(y.std().item() - 1) < 0.02
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout(x, 1.5)


# --- corners of the calls ---
@pytest.mark.parametrize("error, text, call", [
    (ValueError, "'eps' must be positive", lambda: F.batch_norm(
        fl.ones(2, 3), None, None, training=True, eps=-1.0)),
    (RuntimeError, "at least one channel", lambda: F.group_norm(fl.ones(1, 0, 2), 1)),
    (ValueError, "must have at least 3 dimensions", lambda: F.adaptive_max_pool2d(fl.ones(2, 2), 2)),
    (RuntimeError, "only the batch dimension", lambda: F.max_pool3d(fl.ones(0, 1, 2, 10), 1)),
    (RuntimeError, "bias type .* should be the same", lambda: F.conv1d(
        fl.ones(1, 1, 4, dtype=fl.int64), fl.ones(1, 1, 2, dtype=fl.int64), fl.ones(1, dtype=fl.float64))),
    (RuntimeError, "does not go with probabilities", lambda: F.cross_entropy(
        fl.ones(2, 3), fl.ones(2, 3), ignore_index=1)),
    (RuntimeError, "Expected floating point type for target", lambda: F.cross_entropy(
        fl.ones(2, 3), fl.ones(2, 3, dtype=fl.int64))),
    (RuntimeError, "smaller than num_classes", lambda: F.one_hot(fl.tensor([1, 3]), 3)),
    (RuntimeError, "non-negative", lambda: F.one_hot(fl.tensor([1, -1]), 3)),
])
def test_errors(error, text, call):
    with pytest.raises(error, match=text):
        call()


def test_indices_out_of_range_in_compiled_functions():
    hot, x = fl.compile(lambda i: F.one_hot(i, 4) * 2), fl.zeros(4)
    fill = fl.compile(lambda i: x.index_fill(0, i, 1.0) * 2)
    assert hot(fl.tensor([3, 0])).tolist() == [[0, 0, 0, 2], [2, 0, 0, 0]]
    assert fill(fl.tensor([3, -4])).tolist() == [2, 0, 0, 2]
    for wrong in ([4, 0], [1, -5]):
        with pytest.raises(RuntimeError, match="Class values must be"):
            hot(fl.tensor(wrong))
        with pytest.raises(IndexError, match="out of range|out of bounds"):
            fill(fl.tensor(wrong))


def test_results_in_given_tensors():
    x, out = tensor(1, 1, 4, 4), fl.empty(0, dtype=fl.float64)
    assert F.avg_pool2d(x, 2, out=out) is out
    check(out, x.numpy().reshape(1, 1, 2, 2, 2, 2).mean((3, 5)))
    assert F.logsigmoid(x, out=out) is out and out.shape == x.shape


def test_corner_cases():
    assert F.one_hot(fl.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    x = tensor(1, 1, 5)
    check(F.pad(x, (-1, 1), "circular"), np.pad(x.numpy()[..., 1:], ((0, 0), (0, 0), (0, 1)), "wrap"))
    image = tensor(1, 4, 2, 2)
    shuffled = F.pixel_shuffle(image, 1)
    shuffled.zero_()
    assert image.abs().sum().item() > 0
    grid = tensor(1, 2, 2, 2, low=-1, high=1).requires_grad_()
    F.grid_sample(image, grid, mode="nearest", align_corners=False).sum().backward()
    assert grid.grad.abs().sum().item() == 0
    one = tensor(1, 2).requires_grad_()
    assert F.pdist(one).shape == (0,) and F.pdist(one).requires_grad
    running = fl.zeros(3), fl.ones(3)
    F.batch_norm(fl.ones(0, 3), *running, training=True)
    assert running[0].tolist() == [0, 0, 0] and running[1].tolist() == [1, 1, 1]


def test_masks_by_their_form():
    from flambeau.nn.attention import bias

    attention, q = F.scaled_dot_product_attention, fl.randn(1, 2, 3, 4)
    k = fl.randn(1, 2, 5, 4)
    for mask in (bias.causal_upper_left(3, 5), bias.causal_lower_right(3, 5)):
        fl.testing.assert_close(attention(q, k, k, mask), attention(q, k, k, mask.materialize()))
    fl.testing.assert_close(attention(q, q, q, attn_mask=bias.causal_lower_right(3, 3)),
                               attention(q, q, q, is_causal=True))
    upper = bias.causal_upper_left(3, 5)
    for call, error in ((lambda: attention(q, k, k, bias.causal_upper_left(3, 3)), ValueError),
                        (lambda: attention(q, k, k, upper, is_causal=True), ValueError),
                        (lambda: fl.add(q, upper), NotImplementedError)):
        with pytest.raises(error):
            call()
