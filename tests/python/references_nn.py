"""What the operators of images, pooling and sequences compute, in NumPy, element by element: see references.py."""
import itertools
import math

import numpy as np

from references import reference


# Other resolutions: along one dimension after the other.

def resized(x, sizes, scales, at_line):
    """at_line(n, m, scale) gives for every output position its pairs of input position and weight."""
    for k, size in enumerate(sizes):
        dim = k + 2
        rows = at_line(x.shape[dim], size, scales[k])
        x = np.stack([sum(np.take(x, min(max(j, 0), x.shape[dim] - 1), dim) * w for j, w in row) for row in rows], dim)
    return x


def step(n, m, scale, corners=False):
    if corners:
        return (n - 1) / (m - 1) if m > 1 else 0.0
    return 1 / scale if scale else n / m


def nearest(middle):
    return lambda x, sizes, *scales: resized(x, sizes, scales, lambda n, m, s: [
        [(math.floor((y + middle) * step(n, m, s)), 1.0)] for y in range(m)])


def keys(d, a):
    d = abs(d)
    if d <= 1:
        return (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1
    return a * (d ** 3 - 5 * d ** 2 + 8 * d - 4) if d < 2 else 0.0


def source(y, n, m, scale, corners):
    return y * step(n, m, scale, True) if corners else (y + 0.5) * step(n, m, scale) - 0.5


def linear_line(corners):
    def line(n, m, scale):
        places = [max(source(y, n, m, scale, corners), 0) for y in range(m)]
        return [[(math.floor(p), 1 - p + math.floor(p)), (math.floor(p) + 1, p - math.floor(p))] for p in places]
    return line


def cubic_line(corners):
    def line(n, m, scale):
        places = [source(y, n, m, scale, corners) for y in range(m)]
        return [[(math.floor(p) + k, keys(p - math.floor(p) - k, -0.75)) for k in range(-1, 3)] for p in places]
    return line


def average_line(corners, reach, kernel):
    def line(n, m, scale):
        by = step(n, m, scale, corners)
        width = max(by, 1)
        rows = []
        for y in range(m):
            center = by * (y + 0.5)
            first, last = max(int(center - reach * width + 0.5), 0), min(int(center + reach * width + 0.5), n)
            weights = [kernel((j - center + 0.5) / width) for j in range(first, last)]
            rows.append([(j, w / sum(weights)) for j, w in zip(range(first, last), weights)])
        return rows
    return line


reference("upsample_nearest3d")(nearest(0))
reference("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d")(nearest(0.5))
reference("upsample_linear1d", "upsample_trilinear3d")(
    lambda x, sizes, corners, *scales: resized(x, sizes, scales, linear_line(corners)))
reference("upsample_bicubic2d")(
    lambda x, sizes, corners, *scales: resized(x, sizes, scales, cubic_line(corners)))
reference("_upsample_bilinear2d_aa")(lambda x, sizes, corners, *scales: resized(
    x, sizes, scales, average_line(corners, 1, lambda d: max(1 - abs(d), 0))))
reference("_upsample_bicubic2d_aa")(lambda x, sizes, corners, *scales: resized(
    x, sizes, scales, average_line(corners, 2, lambda d: keys(d, -0.5))))


# Sampling at positions.

def mirrored(p, low, high):
    while not low <= p <= high:
        p = 2 * low - p if p < low else 2 * high - p
    return p


def kept(p, n, padding, corners):
    if padding == 2 and n > 1 or padding == 2 and not corners:
        p = mirrored(p, 0, n - 1) if corners else mirrored(p, -0.5, n - 0.5)
    return min(max(p, 0), n - 1) if padding else p


@reference("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(x, grid, mode, padding, corners):
    sizes = x.shape[2:]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for point in itertools.product(*map(range, grid.shape[:-1])):
        n, place = point[0], grid[point][::-1]
        pixels = [(p + 1) / 2 * (s - 1) if corners else ((p + 1) * s - 1) / 2 for p, s in zip(place, sizes)]
        if mode != 2:
            pixels = [kept(p, s, padding, corners) for p, s in zip(pixels, sizes)]
        if mode == 1:
            taps = [[(round(p), 1.0)] for p in pixels]
        elif mode == 0:
            taps = [[(math.floor(p), 1 - p + math.floor(p)), (math.floor(p) + 1, p - math.floor(p))] for p in pixels]
        else:
            taps = [[(kept(math.floor(p) + k, s, padding, corners), keys(p - math.floor(p) - k, -0.75))
                     for k in range(-1, 3)] for p, s in zip(pixels, sizes)]
        for tap in itertools.product(*taps):
            if all(0 <= j <= s - 1 for (j, _), s in zip(tap, sizes)):
                weight = math.prod(w for _, w in tap)
                out[(n, slice(None), *point[1:])] += weight * x[(n, slice(None), *(int(j) for j, _ in tap))]
    return out


# Pooling that chooses.

def chosen(x, starts_and_ends):
    """starts_and_ends(n, c, dimension) lists the windows of one dimension of one channel."""
    counts = [len(starts_and_ends(0, 0, d)) for d in range(x.ndim - 2)]
    out, at = np.zeros((*x.shape[:2], *counts)), np.zeros((*x.shape[:2], *counts), np.int64)
    for n, c in itertools.product(*map(range, x.shape[:2])):
        windows = [starts_and_ends(n, c, d) for d in range(x.ndim - 2)]
        for place in itertools.product(*map(range, counts)):
            box = tuple(slice(*windows[d][k]) for d, k in enumerate(place))
            best = np.unravel_index(np.argmax(x[n, c][box]), x[n, c][box].shape)
            position = tuple(b + s.start for b, s in zip(best, box))
            out[(n, c, *place)] = x[n, c][position]
            at[(n, c, *place)] = np.ravel_multi_index(position, x.shape[2:])
    return out, at


def batched(f):
    def call(x, size, *rest):
        if x.ndim == len(size) + 2:
            return f(x, size, *rest)
        return tuple(r[0] for r in f(x[None], size, *rest))
    return call


@reference("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
@batched
def adaptive_max_pool(x, size):
    def windows(n, c, d):
        length = x.shape[2 + d]
        return [(k * length // size[d], -(-(k + 1) * length // size[d])) for k in range(size[d])]
    return chosen(x, windows)


@reference("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(x, kernel, size, samples):
    def windows(n, c, d):
        length, s = x.shape[2 + d], samples[n, c, 1 - d if len(kernel) == 2 else d]
        by = (length - kernel[d]) / (size[d] - 1) if size[d] > 1 else 0
        starts = [int((k + s) * by) - int(s * by) for k in range(size[d] - 1)] + [length - kernel[d]]
        return [(start, start + kernel[d]) for start in starts]
    return chosen(x, windows)


@reference("max_unpool2d", "max_unpool3d")
def max_unpool(x, indices, size, *unused):
    out = np.zeros((*x.shape[:-len(size)], math.prod(size)))
    np.put_along_axis(out, indices.reshape(*out.shape[:-1], -1), x.reshape(*out.shape[:-1], -1), -1)
    return out.reshape(*out.shape[:-1], *size)


# Losses, distances, bags.

def reduced(losses, reduction):
    return (losses, np.mean(losses), np.sum(losses))[reduction]


@reference("multi_margin_loss")
def multi_margin_loss(x, target, p, margin, weight, reduction):
    rows, targets = np.atleast_2d(x), np.atleast_1d(target)
    losses = np.array([sum(max(0, margin - row[t] + row[j]) ** p for j in range(len(row)) if j != t) / len(row)
                       * (1 if weight is None else weight[t]) for row, t in zip(rows, targets)])
    return reduced(losses if x.ndim == 2 else losses[0], reduction)


@reference("multilabel_margin_loss")
def multilabel_margin_loss(x, target, reduction):
    losses = []
    for row, labels in zip(np.atleast_2d(x), np.atleast_2d(target)):
        mine = list(itertools.takewhile(lambda label: label >= 0, labels))
        others = [j for j in range(len(row)) if j not in mine]
        losses.append(sum(max(0, 1 - row[t] + row[j]) for t in mine for j in others) / len(row))
    return reduced(np.array(losses) if x.ndim == 2 else losses[0], reduction)


@reference("pdist")
def pdist(x, p):
    return np.array([np.linalg.norm(a - b, p) for a, b in itertools.combinations(x, 2)])


@reference("ctc_loss.IntList", "ctc_loss.Tensor")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """Every path that collapses to the target."""
    losses, start = [], 0
    for k, (steps, length) in enumerate(zip(np.asarray(input_lengths).tolist(), np.asarray(target_lengths).tolist())):
        wanted = list(targets[k, :length] if targets.ndim == 2 else targets[start:start + length])
        start += length
        total = -np.inf
        for path in itertools.product(range(log_probs.shape[2]), repeat=steps):
            if [label for label, _ in itertools.groupby(path) if label != blank] == wanted:
                total = np.logaddexp(total, sum(log_probs[t, k, label] for t, label in enumerate(path)))
        losses.append(0.0 if zero_infinity and total == -np.inf else -total)
    losses = np.array(losses)
    return reduced(losses / np.maximum(target_lengths, 1) if reduction == 1 else losses, reduction)


@reference("embedding_bag.padding_idx")
def embedding_bag(weight, indices, offsets, by_frequency, mode, sparse, samples, include_last, padding):
    starts = offsets[:-1] if include_last else offsets
    bags = [range(a, b) for a, b in zip(starts, [*starts[1:], len(indices)])]
    bag_of = np.array([sum(starts <= k) - 1 for k in range(len(indices))])
    kept_of = [[k for k in bag if padding is None or indices[k] != padding] for bag in bags]
    out = np.zeros((len(bags), weight.shape[1]))
    maxima = np.full(out.shape, -1) if mode == 2 else np.zeros(len(bags), np.int64)
    for b, bag in enumerate(kept_of):
        if bag:
            rows = weight[indices[bag]] * (1 if samples is None else samples[bag][:, None])
            out[b] = (rows.sum(0), rows.mean(0), rows.max(0))[mode]
            if mode == 2:
                maxima[b] = indices[np.array(bag)[rows.argmax(0)]]
    return out, bag_of, np.array([len(bag) for bag in kept_of]), maxima
