"""Scatter, embedding, padding, pooling and resizing, in kinds that compilers of tensor programs got wrong."""
import itertools

import flambeau as torch
import pytest
from compilers import close, values
from flambeau.nn import functional as F


# Several writes to one place ------------------------------------------------------------------------------
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_scatter_add_to_one_row_then_read(compile_fn, rows):
    def pool(x, index):
        total = torch.zeros(1, 2).scatter_add_(0, index.unsqueeze(1).expand(-1, 2), x)
        return total.index_select(0, index), total[0] * 2

    x = torch.arange(2.0 * rows).view(rows, 2)
    read, double = compile_fn(pool)(x, torch.zeros(rows, dtype=torch.int64))
    sums = [float(rows * (rows - 1)), float(rows * (rows - 1) + rows)]
    assert values(read) == [sums] * rows and values(double) == [2 * s for s in sums]


@pytest.mark.parametrize(
    "reduce, want", [("sum", [7, 2, 1]), ("amax", [4, 2, 1]), ("prod", [12, 2, 1]), ("mean", [8 / 3, 1.5, 1])]
)
def test_scatter_reduce_of_repeated_places(compile_fn, reduce, want):
    def run(x, index):
        return torch.ones(3).scatter_reduce(0, index, x, reduce, include_self=reduce in ("mean", "prod"))

    if reduce == "sum":
        want = [7, 2, 1]
    assert close(values(compile_fn(run)(torch.tensor([3.0, 2.0, 4.0]), torch.tensor([0, 1, 0]))), want)


def test_counts_by_index_add(compile_fn):
    def count(labels):
        out = torch.zeros(4, dtype=torch.int64)
        out.index_add_(0, labels, torch.ones_like(labels))
        return out, out.cumsum(0)

    counts, running = compile_fn(count)(torch.tensor([3, 0, 3, 3, 1]))
    assert values(counts) == [1, 1, 0, 3] and values(running) == [1, 2, 2, 5]


# Indices out of range -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "look, index",
    [
        (lambda i: F.embedding(i, torch.ones(4, 3)), [0, -1]),
        (lambda i: F.embedding(i, torch.ones(4, 3)), [4]),
        (lambda i: torch.ones(4)[i], [4]),
        (lambda i: torch.ones(4)[i], [-5]),
        (lambda i: torch.ones(2, 4).index_select(1, i), [9]),
        (lambda i: torch.ones(4).gather(0, i), [7]),
    ],
)
def test_wrong_indices_are_refused(compile_fn, look, index):
    compiled = compile_fn(look)
    compiled(torch.tensor([0, 1]))
    with pytest.raises((IndexError, RuntimeError)):
        compiled(torch.tensor(index))


@pytest.mark.parametrize("target", [3, -1, 100])
@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_wrong_targets_are_refused(compile_fn, loss, target):
    x = torch.arange(6.0).view(2, 3)
    with pytest.raises((IndexError, RuntimeError)):
        compile_fn(lambda x, t: loss(x, t))(x, torch.tensor([1, target])).item()


def test_ignored_target(compile_fn):
    x = torch.zeros(2, 4)
    out = compile_fn(lambda x, t: F.cross_entropy(x, t, ignore_index=-1))(x, torch.tensor([-1, 2]))
    assert close(out.item(), 1.3862943611)


# Offsets from lengths, padding ----------------------------------------------------------------------------
@pytest.mark.parametrize("rows, columns", [(1, 20000), (3, 4), (64, 300)])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_offsets_of_rows(compile_fn, rows, columns, dtype):
    def offsets(mask):
        return F.pad(mask.sum(-1, dtype=dtype).cumsum(0, dtype=dtype), (1, 0))

    out = compile_fn(offsets)(torch.ones(rows, columns, dtype=torch.bool))
    assert out.dtype == dtype and values(out) == [columns * i for i in range(rows + 1)]


@pytest.mark.parametrize("pad", [(3, 3), (0, 9), (7, 0), (1, 2, 3, 4), (1, 1, 0, 2, 2, 0)])
def test_padding_of_one_element(compile_fn, pad):
    out = compile_fn(lambda x: F.pad(x, pad, value=-1.0))(torch.full((1, 1, 1), 5.0))
    places = [i for i, v in enumerate(torch.flatten(out).tolist()) if v != -1]
    before = [pad[2 * d] if 2 * d < len(pad) else 0 for d in (2, 1, 0)]
    assert places == [(before[0] * out.shape[1] + before[1]) * out.shape[2] + before[2]]
    assert torch.flatten(out)[places[0]].item() == 5


@pytest.mark.parametrize(
    "pad, rows",
    [
        ((0, -2), [[0, 1], [4, 5]]),
        ((-1, 0), [[1, 2, 3], [5, 6, 7]]),
        ((-1, 1), [[1, 2, 3, 0], [5, 6, 7, 0]]),
        ((0, 0, -1, 0), [[4, 5, 6, 7]]),
    ],
)
def test_negative_padding_then_broadcast(compile_fn, pad, rows):
    def crop(x):
        y = F.pad(x, pad) + torch.ones(1)
        return y, y.min(), y.sum(0)

    out, least, columns = compile_fn(crop)(torch.arange(8.0).view(2, 4))
    want = [[v + 1 for v in row] for row in rows]
    assert (
        values(out) == want
        and least.item() == min(map(min, want))
        and values(columns) == [sum(c) for c in zip(*want)]
    )


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_with_what_is_there(compile_fn, mode):
    want = {"reflect": [2, 1, 0, 1, 2, 1], "replicate": [0, 0, 0, 1, 2, 2], "circular": [1, 2, 0, 1, 2, 0]}
    assert values(compile_fn(lambda x: F.pad(x, (2, 1), mode=mode))(torch.arange(3.0).view(1, 1, 3))) == [
        [want[mode]]
    ]


# Windows --------------------------------------------------------------------------------------------------
def windows(size, kernel, stride, padding, ceil):
    """For each place of the output: rows of the input in the window, and its length, padding included."""
    count = -(-(size + 2 * padding - kernel) // stride) if ceil else (size + 2 * padding - kernel) // stride
    count += 1
    if ceil and (count - 1) * stride >= size + padding:
        count -= 1
    spans = [(i * stride - padding, min(i * stride - padding + kernel, size + padding)) for i in range(count)]
    return [([r for r in range(*span) if 0 <= r < size], span[1] - span[0]) for span in spans]


@pytest.mark.parametrize(
    "size, kernel, stride, padding", [(6, 3, 2, 1), (5, 2, 2, 0), (7, 3, 3, 1), (4, 4, 2, 2)]
)
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("include", [False, True])
def test_average_pool_and_its_gradient(compile_fn, size, kernel, stride, padding, ceil, include):
    x = torch.arange(float(size * size)).view(1, 1, size, size).requires_grad_()
    out = compile_fn(lambda x: F.avg_pool2d(x, kernel, stride, padding, ceil, include))(x)
    spans = windows(size, kernel, stride, padding, ceil)
    want, grad = [], [[0.0] * size for _ in range(size)]
    for (rows, height), (columns, width) in itertools.product(spans, spans):
        divisor = height * width if include else len(rows) * len(columns)
        want.append(sum(size * r + c for r in rows for c in columns) / divisor)
        for r, c in itertools.product(rows, columns):
            grad[r][c] += 1 / divisor
    assert close(torch.flatten(out).tolist(), want)
    out.sum().backward()
    assert close(values(x.grad), [[grad]])


def test_max_pool_with_padding_of_negatives(compile_fn):
    out = compile_fn(lambda x: F.max_pool1d(x, 3, stride=2, padding=1))(
        torch.tensor([[[-5.0, -3.0, -4.0, -9.0]]])
    )
    assert values(out) == [[[-3, -3]]]


@pytest.mark.parametrize("height, width", [(7, 10), (4, 4), (1, 5)])
def test_bilinear_to_one_pixel(compile_fn, height, width):
    x = torch.arange(float(height * width)).view(1, 1, height, width) ** 2
    out = compile_fn(lambda x: F.interpolate(x, size=(1, 1), mode="bilinear"))(x)

    def middle(n):  # of a row of n pixels: those around its centre, each with half its weight
        return [(n - 1) // 2, n // 2]

    want = sum(x[0, 0, r, c].item() for r in middle(height) for c in middle(width)) / 4
    assert close(values(out), [[[[want]]]])


@pytest.mark.parametrize("scale", [2, 3])
def test_nearest_up_and_down(compile_fn, scale):
    x = torch.arange(4.0).view(1, 1, 4)
    up = compile_fn(lambda x: F.interpolate(x, scale_factor=scale))(x)
    down = compile_fn(lambda x: F.interpolate(x, size=4))(up)
    assert values(up) == [[[i for i in range(4) for _ in range(scale)]]] and values(down) == values(x)
