"""scaled_dot_product_attention on a device: by a library where it has the call, else as on the CPU."""
import os

import pytest

import flambeau as fl
import flambeau.nn.functional as F

FAKE = "fake" in os.environ.get("FLAMBEAU_CUDA_DRIVER", "")
SIZE = (2, 4, 6, 8) if FAKE else (2, 4, 80, 64)  # batch, heads, tokens, width
BY_LIBRARY = fl.backends.cudnn.is_available() and not FAKE


def halves(*size, dtype=fl.bfloat16):
    return fl.randn(*size).to(dtype)


def operands(size=SIZE, key_heads=None, dtype=fl.bfloat16):
    batch, heads, tokens, width = size
    fl.manual_seed(0)
    other = (batch, key_heads or heads, tokens, width)
    return halves(*size, dtype=dtype), halves(*other, dtype=dtype), halves(*other, dtype=dtype)


def results(attend, tensors, device, dtype):
    """Output and gradients, as float32 on the CPU."""
    q, k, v = (x.detach().to(device, dtype).requires_grad_() for x in tensors)
    out = attend(q, k, v)
    weights = fl.linspace(-1, 1, out.numel(), device=device).view(out.shape)
    (out.float() * weights).sum().backward()
    return [x.detach().float().cpu() for x in (out, q.grad, k.grad, v.grad)]


def check(attend, tensors, tolerance=2e-2):
    """Eager and compiled on the device against float32 on the CPU."""
    dtype = tensors[0].dtype
    expected = results(attend, tensors, "cpu", fl.float32)
    eager = results(attend, tensors, "cuda", dtype)
    compiled = results(fl.compile(attend), tensors, "cuda", dtype)
    for what, e, c, x in zip(("output", "query", "key", "value"), eager, compiled, expected):
        scale = x.abs().max().item() + 1e-3
        assert (e - x).abs().max().item() < tolerance * scale, what
        assert (c - x).abs().max().item() < tolerance * scale, what
        if BY_LIBRARY:
            assert (e - c).abs().max().item() < tolerance / 4 * scale, what


@pytest.mark.parametrize("dtype", [fl.bfloat16, fl.float16])
@pytest.mark.parametrize("causal", [False, True])
def test_is_the_cpus(dtype, causal):
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), operands(dtype=dtype))


def test_scale_and_single_heads():
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3), operands())
    q, k, v = (x[0] for x in operands())
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v))
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (q[0], k[0], v[0]))


def test_shared_heads():
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
          operands(key_heads=2))


@pytest.mark.parametrize("rows", ["some", "none"])
@pytest.mark.parametrize("numbers", [False, True])
def test_masks(rows, numbers):
    batch, heads, tokens, _ = SIZE
    fl.manual_seed(1)
    mask = fl.rand(batch, 1, tokens, tokens) > 0.5
    mask[:, :, 0] = rows == "some"  # or a query that may look at nothing: its output is 0
    if numbers:
        mask = fl.where(mask, fl.randn(batch, heads, tokens, tokens), -fl.inf)

    def attend(q, k, v):
        own = mask.to(q.device, q.dtype) if numbers else mask.to(q.device)
        return F.scaled_dot_product_attention(q, k, v, own)

    check(attend, operands())
    lower = fl.ones(tokens, tokens, dtype=fl.bool).tril().expand(batch, 1, -1, -1)  # a view
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, lower.to(q.device)), operands())
    padding = fl.arange(tokens) < tokens - 2  # one row for all queries
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, padding.to(q.device)[None, None, None]),
          operands())


def test_gradient_of_a_mask():
    q, k, v = (x.cuda() for x in operands())
    mask = fl.zeros(SIZE[2], SIZE[2], dtype=q.dtype, device="cuda", requires_grad=True)
    F.scaled_dot_product_attention(q, k, v, mask).float().square().sum().backward()
    assert mask.grad.abs().max() > 0


def test_layout_of_projections():
    """Heads that lie behind the tokens, as one product with all weights gives them."""
    batch, heads, tokens, width = SIZE
    fl.manual_seed(0)
    packed = halves(batch, tokens, 3 * heads * width)

    def attend(x):
        q, k, v = x.view(batch, tokens, 3, heads, width).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, tokens, -1)

    def both(device, dtype, f):
        x = packed.to(device, dtype).requires_grad_()
        out = f(x)
        out.float().square().sum().backward()
        return out.detach().float().cpu(), x.grad.float().cpu()

    expected = both("cpu", fl.float32, attend)
    for f in attend, fl.compile(attend):
        for a, e in zip(both("cuda", fl.bfloat16, f), expected):
            assert (a - e).abs().max() < 3e-2 * e.abs().max()


def test_dropout():
    """The same numbers after the same seed, eager and compiled; forward and backward drop the same weights."""
    batch, heads, tokens, width = SIZE
    q, k, _ = (x.cuda() for x in operands())
    q.zero_()  # all weights are equal
    v = fl.eye(tokens, width, dtype=q.dtype, device="cuda").expand(batch, heads, -1, -1).contiguous()
    v.requires_grad_()

    def attend():
        fl.manual_seed(7)
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.25)

    first, other = attend(), F.scaled_dot_product_attention(q, k, v, dropout_p=0.25)
    assert fl.equal(first, attend()) and not fl.equal(first, other)
    seen = first[..., :min(tokens, width)]
    if not FAKE:
        assert abs((seen != 0).float().mean().item() - 0.75) < 0.02
        fl.testing.assert_close(seen[seen != 0].float().mean().item(), 1 / tokens / 0.75, rtol=1e-2, atol=0)
    first.sum().backward()  # by value: how often its row was kept, times 1 / tokens / 0.75
    expected = seen.detach().float().sum(-2)[..., None].expand(-1, -1, -1, width)
    found = v.grad.float()[:, :, :seen.size(-1)]
    assert (found - expected).abs().max() < 2e-2 * expected.abs().max()
    if BY_LIBRARY:
        compiled = fl.compile(lambda: F.scaled_dot_product_attention(q, k, v, dropout_p=0.25))
        fl.manual_seed(7)
        assert fl.equal(compiled(), first)


def test_second_derivative():
    q, k, v = (x.cuda().requires_grad_() for x in operands((1, 2, 16, 8)))
    out = F.scaled_dot_product_attention(q, k, v).float().square().sum()
    by_q, = fl.autograd.grad(out, q, create_graph=True)
    by_q.float().square().sum().backward()
    reference = [x.detach().float().cpu().requires_grad_() for x in (q, k, v)]
    out = F.scaled_dot_product_attention(*reference).square().sum()
    by_q, = fl.autograd.grad(out, reference[0], create_graph=True)
    by_q.square().sum().backward()
    for x, e in zip((q, k, v), reference):
        assert (x.grad.float().cpu() - e.grad).abs().max() < 0.1 * e.grad.abs().max()


@pytest.mark.skipif(not BY_LIBRARY, reason="no GPU with cuDNN")
def test_memory_of_the_scores():
    """They don't lie in memory; their gradient may, within the call."""
    q, k, v = (x.cuda().requires_grad_() for x in operands((2, 8, 1024, 64)))
    scores = 2 * 8 * 1024 * 1024 * q.element_size()
    for f in F.scaled_dot_product_attention, fl.compile(lambda *x, **o: F.scaled_dot_product_attention(*x, **o)):
        fl.cuda.synchronize()
        before = fl.cuda.memory_allocated()
        fl.cuda.reset_peak_memory_stats()
        out = f(q, k, v, is_causal=True)
        kept = fl.cuda.memory_allocated() - before
        assert kept < scores / 4
        out.sum().backward()
        assert fl.cuda.max_memory_allocated() - before < 2 * scores
        q.grad = k.grad = v.grad = None


@pytest.mark.skipif(not BY_LIBRARY, reason="no GPU with cuDNN")
def test_masks_made_in_a_compiled_function():
    q, k, v = (x.cuda().requires_grad_() for x in operands((2, 8, 1024, 64)))

    @fl.compile
    def f(q, k, v):
        at = fl.arange(q.shape[2], device=q.device)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=at[:, None] >= at)

    before = fl.cuda.memory_allocated()
    out = f(q, k, v)
    assert fl.cuda.memory_allocated() - before < 2 * 8 * 1024 * 1024 * q.element_size() / 2
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert (out - expected).abs().max() < 2e-2


@pytest.mark.skipif(not BY_LIBRARY, reason="no GPU with cuDNN")
def test_addresses_that_the_library_does_not_take():
    """Elements that start anywhere: another way to the same numbers."""
    tensors = operands((1, 2, 32, 64))
    expected = F.scaled_dot_product_attention(*(x.float() for x in tensors))
    odd = [fl.empty(x.numel() + 1, dtype=x.dtype, device="cuda")[1:].view(x.shape).copy_(x) for x in tensors]
    found = F.scaled_dot_product_attention(*odd).float().cpu()
    assert (found - expected).abs().max() < 2e-2


def test_float32_and_wide_heads():
    q, k, v = (fl.randn(1, 2, 5, 7, device="cuda") for _ in range(3))
    expected = F.scaled_dot_product_attention(q.cpu(), k.cpu(), v.cpu())
    fl.testing.assert_close(F.scaled_dot_product_attention(q, k, v).cpu(), expected)
    if BY_LIBRARY:
        check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), operands((1, 2, 16, 160)))
