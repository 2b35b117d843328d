"""Memory-bound kernels on a GPU, compiled: the same program for PyTorch and for this library.

    python kernels.py [name...]                # PyTorch
    python -m flambeau kernels.py [name...]    # this library

Each row: the median of events in ms, the bytes that have to move over it in TB/s, and its share of what a copy
of a large tensor reaches in the same run. The cache is overwritten before each call.
"""
import statistics
import sys

import torch
import torch.nn.functional as F


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def chain(x, y):
    return F.gelu(x * y + 1, approximate="tanh") * torch.sigmoid(y)


def rms_norm(x, w):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w


def masked_softmax(s, mask):
    return F.dropout(torch.softmax((s * 0.125).masked_fill(mask, float("-inf")), -1), 0.1, True)


def softmax_gradient(y, g):
    w = g * y
    return w - y * w.sum(-1, keepdim=True)


def column_moments(x):
    return x.sum(0), x.square().sum(0)


def cases():
    """Name, function and a maker of its inputs."""
    big, half = (8192, 4096), torch.bfloat16
    wide = lambda rows, columns, dtype=torch.float32: lambda: [randn(rows, columns, dtype=dtype)]
    pair = lambda rows, columns, dtype: lambda: [randn(rows, columns, dtype=dtype) for _ in range(2)]
    softmax = lambda x: torch.softmax(x, -1)
    yield "chain", chain, pair(*big, torch.float32)
    yield "chain_bf16", chain, pair(*big, half)
    yield "add_bf16", lambda x, y: x + y, pair(*big, half)
    yield "layer_norm_of_sum", lambda x, y, w, b: F.layer_norm(x + y, (4096,), w, b), \
        lambda: [randn(*big), randn(*big), randn(4096), randn(4096)]
    yield "layer_norm_768_bf16", lambda x, w, b: F.layer_norm(x, (768,), w, b), \
        lambda: [randn(49152, 768, dtype=half), randn(768, dtype=half), randn(768, dtype=half)]
    yield "rms_norm", rms_norm, lambda: [randn(*big), randn(4096)]
    for columns in (64, 100, 197, 256, 512, 1024, 2048, 4096):
        yield f"softmax_{columns}", softmax, wide((8192 * 4096) // columns, columns)
    for columns in (128, 512, 1024):
        yield f"softmax_bf16_{columns}", softmax, wide((8192 * 4096) // columns, columns, half)
    for columns in (512, 4096):
        yield f"softmax_gradient_{columns}", softmax_gradient, pair((8192 * 4096) // columns, columns, torch.float32)
    yield "softmax_dropout_512_bf16", masked_softmax, lambda: [
        randn(8, 12, 512, 512, dtype=half), torch.ones(512, 512, dtype=torch.bool, device="cuda").triu(1)]
    yield "cross_entropy", lambda x, t: F.cross_entropy(x, t), \
        lambda: [randn(4096, 50304), torch.randint(0, 50304, (4096,), device="cuda")]
    yield "sum_of_rows_100", lambda x: x.sum(-1), wide(335544, 100)
    for rows, columns in ((8192, 4096), (4096, 768), (401408, 64), (1605632, 16)):
        yield f"column_sum_{rows}x{columns}", lambda x: x.sum(0), wide(rows, columns)
    yield "column_moments_401408x64", column_moments, wide(401408, 64)


def time_of(step, flush):
    times = []
    for n in range(25):
        flush.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        step()
        end.record()
        torch.cuda.synchronize()
        if n >= 5:
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def tensor_bytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def main():
    names = sys.argv[1:]
    flush = torch.empty(64 << 20, device="cuda")
    source, target = randn(8192, 4096), randn(8192, 4096)
    rate = 2 * tensor_bytes([source]) / time_of(lambda: target.copy_(source), flush) / 1e9
    del source, target
    print(f"{'copy':32} {rate:27.3f} TB/s")
    for name, function, make in cases():
        if names and not any(name.startswith(n) for n in names):
            continue
        inputs = make()
        compiled = torch.compile(function)
        with torch.no_grad():
            results = compiled(*inputs)
            ms = time_of(lambda: compiled(*inputs), flush)
        moved = tensor_bytes(inputs) + tensor_bytes(results if isinstance(results, tuple) else [results])
        print(f"{name:32} {ms:9.4f} ms {moved / ms / 1e9:9.3f} TB/s {100 * moved / ms / 1e9 / rate:6.1f} %", flush=True)


if __name__ == "__main__":
    main()
