"""What PyTorch takes for the cases of bench_cuda_library: one line each, by events around many calls."""
import torch


def milliseconds(call, calls=50):
    for _ in range(5):
        call()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / calls


def report(name, operations, call):
    ms = milliseconds(call)
    print(f"{name:<44} {ms:>9.4f} ms {operations / ms * 1e-9:>6.1f} TFLOP/s", flush=True)


def matmul(n, dtype, tf32=False, transposed=False):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a, b = (torch.rand(n, n, device="cuda", dtype=dtype) - 0.5 for _ in range(2))
    out = torch.empty_like(a)
    b = b.t() if transposed else b
    report(f"matmul {dtype} tf32={tf32} {n} transposed={transposed}", 2.0 * n**3, lambda: torch.mm(a, b, out=out))


def convolution(batch, channels, size, out, kernel, stride, dtype, memory_format):
    x = (torch.rand(batch, channels, size, size, device="cuda", dtype=dtype) - 0.5).to(memory_format=memory_format)
    w = (torch.rand(out, channels, kernel, kernel, device="cuda", dtype=dtype) - 0.5).to(memory_format=memory_format)
    arguments = (None, [stride, stride], [kernel // 2, kernel // 2], [1, 1], False, [0, 0], 1)
    y = torch.ops.aten.convolution(x, w, *arguments)
    operations = 2.0 * y.numel() * channels * kernel * kernel
    name = f"conv {dtype} {'last' if memory_format == torch.channels_last else 'first'} " \
           f"{batch}x{channels}x{size}x{size} to {out} k{kernel} s{stride}"
    report(f"{name} forward", operations, lambda: torch.ops.aten.convolution(x, w, *arguments))
    for mask, what in (([True, False, False], "by input"), ([False, True, False], "by weight")):
        report(f"{name} {what}", operations,
               lambda m=mask: torch.ops.aten.convolution_backward(y, x, w, *arguments, m))


def attention(batch, heads, tokens, width, causal):
    q, k, v = (torch.randn(batch, heads, tokens, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
               for _ in range(3))
    operations = 4.0 * batch * heads * tokens * tokens * width / (2 if causal else 1)
    name = f"attention bf16 {batch}x{heads}x{tokens}x{width}{' causal' if causal else ''}"
    backends = torch.nn.attention.SDPBackend
    for backend in (backends.FLASH_ATTENTION, backends.CUDNN_ATTENTION):
        with torch.nn.attention.sdpa_kernel(backend):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            grad = torch.randn_like(out)
            report(f"{name} forward {backend.name}", operations,
                   lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal))
            report(f"{name} backward {backend.name}", operations * 2.5,
                   lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True))


def main():
    for transposed in (False, True):
        matmul(4096, torch.bfloat16, transposed=transposed)
    matmul(1024, torch.bfloat16)
    matmul(4096, torch.float32, tf32=True)
    matmul(4096, torch.float32)
    last, first = torch.channels_last, torch.contiguous_format
    convolution(64, 64, 56, 64, 3, 1, torch.bfloat16, last)
    convolution(64, 64, 56, 256, 1, 1, torch.bfloat16, last)
    convolution(64, 128, 56, 128, 3, 2, torch.bfloat16, last)
    convolution(64, 3, 224, 64, 7, 2, torch.bfloat16, last)
    convolution(64, 64, 56, 64, 3, 1, torch.bfloat16, first)
    convolution(64, 64, 56, 64, 3, 1, torch.float32, first)
    convolution(64, 64, 56, 64, 3, 1, torch.float32, last)
    for causal in (False, True):
        attention(8, 12, 512, 64, causal)
    attention(2, 16, 4096, 128, True)


if __name__ == "__main__":
    main()
