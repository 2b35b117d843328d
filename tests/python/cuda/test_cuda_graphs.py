"""CUDA graphs: torch.cuda.graph(), make_graphed_callables() and torch.compile(mode="reduce-overhead")."""
import gc
import os
import threading

import numpy as np
import pytest

import flambeau as fl
from flambeau import nn

FAKE = "fake" in os.environ.get("FLAMBEAU_CUDA_DRIVER", "")


def figures():
    return fl._C._cuda.recording_figures()


class Linear(nn.Module):
    """Without a library call: the stand-in has none for GPUs, and what runs on the host can't be recorded."""

    def __init__(self, a, b):
        super().__init__()
        self.w = nn.Parameter(fl.randn(b, a) * 0.3)

    def forward(self, x):
        return (x.unsqueeze(1) * self.w).sum(2)


def network():
    fl.manual_seed(0)
    return nn.Sequential(Linear(6, 8), nn.GELU(), nn.BatchNorm1d(8), nn.Dropout(0.3), Linear(8, 3)).cuda()


def record(f, **options):
    g = fl.cuda.CUDAGraph()
    side = fl.cuda.Stream()
    side.wait_stream(fl.cuda.current_stream())
    with fl.cuda.stream(side):
        f()
    fl.cuda.current_stream().wait_stream(side)
    with fl.cuda.graph(g, **options):
        out = f()
    return g, out


# torch.cuda.graph()


def test_a_graph_runs_when_it_is_replayed():
    x = fl.ones(3, device="cuda")
    total = fl.zeros(3, device="cuda")

    def step():
        total.add_(x)
        return x * 2

    g, out = record(step)
    assert total.tolist() == [1, 1, 1]
    x.fill_(5)
    g.replay()
    assert out.tolist() == [10, 10, 10] and total.tolist() == [6, 6, 6]
    g.replay()
    assert total.tolist() == [11, 11, 11]


def test_capturing_is_known():
    assert not fl.cuda.is_current_stream_capturing()
    seen = []
    x = fl.ones(2, device="cuda")
    record(lambda: (seen.append(fl.cuda.is_current_stream_capturing()), x + 1)[1])
    assert seen == [False, True] and not fl.cuda.is_current_stream_capturing()


def test_random_numbers_are_new_at_every_replay_and_eager_ones():
    x = fl.ones(4, device="cuda")

    def draw():
        return fl.rand(5, device="cuda"), fl.nn.functional.dropout(x, 0.5), fl.randn(3, device="cuda")

    g, out = record(draw)
    fl.manual_seed(7)
    expected = [[t.tolist() for t in draw()] for _ in range(3)] + [fl.rand(2, device="cuda").tolist()]
    fl.manual_seed(7)
    for n in range(3):
        g.replay()
        assert [t.tolist() for t in out] == expected[n]
    assert fl.rand(2, device="cuda").tolist() == expected[3]


def test_a_generator_of_ones_own_and_two_graphs_that_draw():
    own = fl.Generator("cuda")
    g1, a = record(lambda: fl.rand(3, device="cuda", generator=own))
    g2, b = record(lambda: fl.rand(3, device="cuda", generator=own))
    own.manual_seed(5)
    g2.replay(), g1.replay()
    first, second = b.tolist(), a.tolist()
    own.manual_seed(5)
    assert first == fl.rand(3, device="cuda", generator=own).tolist()
    assert second == fl.rand(3, device="cuda", generator=own).tolist()


OPTIMIZERS = {
    "sgd": lambda p: fl.optim.SGD(p, lr=0.1, momentum=0.9),
    "adamw": lambda p: fl.optim.AdamW(p, lr=0.01, capturable=True),
    "adam, rate on the device": lambda p: fl.optim.Adam(p, lr=fl.tensor(0.01).cuda(), capturable=True, amsgrad=True),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_forward_backward_and_step_in_one_graph(optimizer):
    def run(graphed):
        model = network()
        x = fl.zeros(5, 6, device="cuda")
        opt = OPTIMIZERS[optimizer](model.parameters())

        def step():
            opt.zero_grad(set_to_none=False)
            loss = model(x).square().mean()
            loss.backward()
            opt.step()
            return loss.detach()

        data = fl.randn(6, 5, 6, generator=fl.Generator().manual_seed(1)).cuda()
        fl.manual_seed(2)
        losses = []
        x.copy_(data[0])
        losses.append(step().item())  # the state of the optimizer is there from here on
        if graphed:
            state = [t.clone() for t in model.state_dict().values()]
            kept_state = [{k: v.clone() for k, v in s.items()} for s in opt.state.values()]
            random = fl.cuda.get_rng_state()
            g, loss = record(step)
            for kept, now in zip(state, model.state_dict().values()):
                now.copy_(kept)
            for kept, s in zip(kept_state, opt.state.values()):
                for k in s:
                    s[k].copy_(kept[k])
            fl.cuda.set_rng_state(random)
        for batch in data[1:]:
            x.copy_(batch)
            if graphed:
                g.replay()
                losses.append(loss.item())
            else:
                losses.append(step().item())
        return losses, [t.cpu().numpy() for t in model.state_dict().values()]

    eager, graphed = run(False), run(True)
    np.testing.assert_allclose(graphed[0], eager[0], rtol=0 if FAKE else 1e-5)
    for a, b in zip(graphed[1], eager[1]):
        np.testing.assert_allclose(a, b, rtol=0 if FAKE else 1e-4, atol=0 if FAKE else 1e-6)


def test_adam_that_counts_on_the_device():
    """Its steps are those of the one that counts on the host, but for roundings of float32."""
    def train(**options):
        model = network()
        opt = fl.optim.AdamW(model.parameters(), lr=0.01, **options)
        fl.manual_seed(2)
        for batch in fl.randn(5, 5, 6, generator=fl.Generator().manual_seed(1)).cuda():
            opt.zero_grad()
            model(batch).square().mean().backward()
            opt.step()
        return model, opt

    (a, _), (b, opt) = train(), train(capturable=True)
    for p, q in zip(a.parameters(), b.parameters()):
        np.testing.assert_allclose(p.detach().cpu().numpy(), q.detach().cpu().numpy(), rtol=1e-4, atol=1e-6)
    assert all(s["step"].is_cuda and s["step"].item() == 5 for s in opt.state.values())
    opt.load_state_dict(opt.state_dict())
    assert all(s["step"].is_cuda for s in opt.state.values())


def test_other_streams_are_recorded_when_they_wait_and_are_waited_for():
    x = fl.ones(3, device="cuda")
    other = fl.cuda.Stream()

    def work(joins=True):
        y = x + 1
        other.wait_stream(fl.cuda.current_stream())
        with fl.cuda.stream(other):
            z = y * 3
            z.record_stream(fl.cuda.current_stream())
        if joins:
            fl.cuda.current_stream().wait_stream(other)
        return z

    g, out = record(work)
    x.fill_(2)
    g.replay()
    assert out.tolist() == [9, 9, 9]
    with pytest.raises(RuntimeError, match="the first stream does not wait for it"):
        record(lambda: work(False))
    assert (x + 1).tolist() == [3, 3, 3] and not fl.cuda.is_current_stream_capturing()


@pytest.mark.parametrize("what, text", [
    (lambda x: x.sum().item(), "waits for"),
    (lambda x: x.cpu(), "page-locked"),
    (lambda x: fl.cuda.synchronize(), "waits for the device"),
    (lambda x: fl.cuda.current_stream().synchronize(), "waits for the device"),
    (lambda x: fl.tensor([1.0, 2.0]).cuda(), "page-locked"),
    (lambda x: fl.sort(x), "not permitted when stream is capturing"),
    (lambda x: x[x > 0], "not permitted when stream is capturing"),
])
def test_what_waits_is_refused(what, text):
    x = fl.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match=text):
        with fl.cuda.graph(fl.cuda.CUDAGraph()):
            what(x)
    assert (x + 1).tolist() == [2, 2, 2]
    g, out = record(lambda: x + 1)
    g.replay()
    assert out.tolist() == [2, 2, 2]


def test_pinned_memory_is_read_at_every_replay():
    source = fl.ones(3).pin_memory()
    g, out = record(lambda: source.to("cuda", non_blocking=True) + 1)
    source.fill_(4)
    g.replay()
    assert out.tolist() == [5, 5, 5]


def test_mistakes_have_clear_errors():
    g = fl.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="non-default stream"):
        g.capture_begin()
    with pytest.raises(RuntimeError, match="capture_begin"):
        g.replay()
    with pytest.raises(RuntimeError, match="Expected `global`"):
        with fl.cuda.graph(g, capture_error_mode="never"):
            pass
    x = fl.ones(2, device="cuda")
    with pytest.raises(RuntimeError, match="records a CUDA graph already"):
        with fl.cuda.graph(g):
            fl.cuda.CUDAGraph().capture_begin()
    with pytest.warns(UserWarning, match="CUDA Graph is empty"):
        with fl.cuda.graph(fl.cuda.CUDAGraph()):
            pass
    g, out = record(lambda: x + 1)
    with pytest.raises(RuntimeError, match="recorded already"):
        with fl.cuda.graph(g):
            pass
    g.reset()
    with pytest.raises(RuntimeError, match="nothing to replay"):
        g.replay()


def test_memory_of_a_graph_is_its_own():
    """What it freed while it was recorded is not given to others: each replay writes it again."""
    x = fl.ones(1 << 16, device="cuda")
    g, out = record(lambda: ((x + 1) * 2 + 3).sum())
    held = [fl.zeros(1 << 16, device="cuda") for _ in range(8)]
    g.replay()
    assert out.item() == 7 * (1 << 16)
    assert all(t.sum().item() == 0 for t in held)
    before = fl.cuda.memory_reserved()
    del g, out
    gc.collect()
    fl.cuda.empty_cache()
    assert fl.cuda.memory_reserved() < before


def test_graphs_share_a_pool():
    x = fl.ones(1 << 15, device="cuda")
    g1, a = record(lambda: (x + 1).sum())
    before = fl.cuda.memory_reserved()
    g2, b = record(lambda: (x + 2).sum(), pool=g1.pool())
    assert fl.cuda.memory_reserved() <= before
    g3, c = record(lambda: (x + 3).sum(), pool=fl.cuda.graph_pool_handle())
    for g, out, expected in ((g1, a, 2), (g2, b, 3), (g3, c, 4)):
        g.replay()
        assert out.item() == expected * (1 << 15)


def test_debug_dump(tmp_path):
    x = fl.ones(2, device="cuda")
    g, _ = record(lambda: x.exp() + 1)
    g.enable_debug_mode()
    g.debug_dump(tmp_path / "graph.dot")
    assert "digraph" in (tmp_path / "graph.dot").read_text()


def test_graphed_callables():
    model, twin = network(), network()
    x = fl.randn(5, 6, generator=fl.Generator().manual_seed(1)).cuda().requires_grad_()
    state = {k: v.clone() for k, v in model.state_dict().items()}
    graphed = fl.cuda.make_graphed_callables(model, (fl.zeros(5, 6, device="cuda", requires_grad=True),))
    assert graphed is model
    model.load_state_dict(state)
    for n in range(2):
        results = []
        for m in (model, twin):
            fl.manual_seed(9 + n)
            x.grad = None
            loss = m(x).square().sum()
            m.zero_grad()
            loss.backward()
            results.append([loss, x.grad.clone(), *[p.grad.clone() for p in m.parameters()], *m.buffers()])
        for a, b in zip(*results):
            np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().cpu().numpy(), rtol=0 if FAKE else 1e-4,
                                       atol=0 if FAKE else 1e-5)
    model.eval(), twin.eval()
    np.testing.assert_allclose(model(x).detach().cpu().numpy(), twin(x).detach().cpu().numpy(), rtol=1e-5)
    f = fl.cuda.make_graphed_callables(lambda a, b: a * b + 1, (fl.ones(3, device="cuda"), fl.ones(3, device="cuda")))
    assert f(fl.full((3,), 2.0, device="cuda"), fl.full((3,), 5.0, device="cuda")).tolist() == [11, 11, 11]
    with pytest.raises(ValueError, match="recorded for a tensor of shape"):
        f(fl.ones(4, device="cuda"), fl.ones(3, device="cuda"))


# torch.compile(mode="reduce-overhead")


def compiled(f, mode="reduce-overhead", **options):
    fl.compiler.reset()
    return fl.compile(f, mode=mode, **options)


def replays(f):
    before = figures()
    out = f()
    after = figures()
    return out, after["recorded"] - before["recorded"], after["replayed"] - before["replayed"]


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
@pytest.mark.parametrize("keeps", [False, True])
def test_training_in_a_mode(mode, keeps):
    """Random numbers, changed buffers and gradients are those of eager mode; losses that are held stay."""
    def train(mode):
        model = network()
        f = model if mode is None else compiled(model, mode)
        opt = fl.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        data = fl.randn(7, 5, 6, generator=fl.Generator().manual_seed(1))
        fl.manual_seed(5)
        losses = []
        for batch in data:
            opt.zero_grad()
            loss = f(batch.cuda()).square().mean()
            loss.backward()
            opt.step()
            losses.append(loss.detach() if keeps else loss.item())
        return [float(v) for v in losses], [t.cpu().numpy() for t in model.state_dict().values()]

    expected = train(None)
    found, recorded, replayed = replays(lambda: train(mode))
    np.testing.assert_allclose(found[0], expected[0], rtol=0 if FAKE else 1e-4)
    for a, b in zip(found[1], expected[1]):
        np.testing.assert_allclose(a, b, rtol=0 if FAKE else 1e-3, atol=0 if FAKE else 1e-5)
    if mode == "default":
        assert recorded == replayed == 0
    else:
        assert 0 < recorded <= 6 and replayed >= 10


def test_outputs_are_never_overwritten_while_they_are_held():
    f = compiled(lambda x: (x * 2, x.sum()))
    x = fl.ones(4, device="cuda")
    held = []

    def run():
        for n in range(40):
            x.fill_(n)
            held.append(f(x))

    _, recorded, replayed = replays(run)
    assert [a.tolist() for a, b in held] == [[2 * n] * 4 for n in range(40)]
    assert [b.item() for a, b in held] == [4 * n for n in range(40)]
    assert replayed >= 38 and recorded <= 2  # small outputs are copied


def test_large_outputs_that_are_held():
    f = compiled(lambda x: x + 1)
    x = fl.zeros(1 << 19, device="cuda")
    held = []

    def run():
        for n in range(8):
            x.fill_(n)
            held.append(f(x))

    _, recorded, replayed = replays(run)
    assert [t[5].item() for t in held] == [n + 1 for n in range(8)]
    assert recorded == replayed == 7
    view = held[3][:7]
    expected = view.tolist()
    held.clear()
    _, recorded, replayed = replays(lambda: [f(x.fill_(100))[0].item() for _ in range(5)])
    assert (recorded, replayed) == (0, 5) and view.tolist() == expected


def test_inputs_that_move_are_copied_and_parameters_are_not():
    model = Linear(6, 8).cuda()
    f = compiled(model)
    x = [fl.randn(5, 6, device="cuda") for _ in range(6)]
    with fl.no_grad():
        _, recorded, _ = replays(lambda: [f(t).tolist() for t in x])
        assert recorded == 1
        model.w.data = fl.randn(8, 6, device="cuda")
        out, recorded, replayed = replays(lambda: [f(t).tolist() for t in x])
        assert recorded == 1 and replayed == 6
        assert out == [model(t).tolist() for t in x]


def test_arguments_that_change_in_place():
    def step(total, x):
        total += x
        return total * 2

    f = compiled(step)
    totals = [fl.zeros(3, device="cuda") for _ in range(2)]
    x = fl.ones(3, device="cuda")
    for n in range(6):
        assert f(totals[0], x).tolist() == [2 * (n + 1)] * 3
    for n in range(4):
        f(totals[1], x)
    assert totals[0].tolist() == [6] * 3 and totals[1].tolist() == [4] * 3


def test_a_graph_for_each_size():
    f = compiled(lambda x: (x * 3).sum(0), dynamic=True)

    def run():
        for _ in range(3):
            for n in (2, 5, 9):
                assert f(fl.ones(n, 2, device="cuda")).tolist() == [3 * n] * 2

    _, recorded, replayed = replays(run)
    assert 3 <= recorded <= 6 and replayed == 6


def test_a_limit_of_sizes():
    f = compiled(lambda x: x * 3, dynamic=True)
    for n in range(2, 40):
        for _ in range(3):
            assert f(fl.ones(n, device="cuda")).sum().item() == 3 * n
    assert "other sizes" in figures()["last_reason"]


def test_settings_and_streams_have_recordings_of_their_own():
    f = compiled(lambda x: x + 1)
    x = fl.ones(3, device="cuda")
    for _ in range(3):
        f(x)
    side = fl.cuda.Stream()
    side.wait_stream(fl.cuda.current_stream())
    with fl.cuda.stream(side):
        out, recorded, replayed = replays(lambda: [f(x).tolist() for _ in range(2)])
    assert (recorded, replayed) == (1, 2) and out[1] == [2, 2, 2]


def test_what_the_host_does_is_not_recorded():
    f = compiled(lambda x: fl.sort(x * 2)[0] + 1)
    x = fl.tensor([3.0, 1.0, 2.0]).cuda()
    before = figures()["skipped"]
    for _ in range(3):
        assert f(x).tolist() == [3, 5, 7]
    assert figures()["skipped"] == before + 1 and "capturing" in figures()["last_reason"]


def test_numbers_of_the_cpu():
    f = compiled(lambda x, a: x * a)
    x = fl.ones(3, device="cuda")
    for n in range(5):
        assert f(x, fl.tensor(float(n))).tolist() == [n] * 3


def test_a_compiled_function_inside_a_graph():
    f = compiled(lambda x: fl.nn.functional.dropout(x, 0.5) + 1)
    x = fl.ones(64, device="cuda")
    for _ in range(3):
        f(x)
    g, out = record(lambda: f(x))
    fl.manual_seed(3)
    g.replay(), g.replay()
    found = out.tolist()
    fl.manual_seed(3)
    f(x)
    assert found == f(x).tolist()


def test_other_streams_read_outputs():
    f = compiled(lambda x: x + 1)
    x = fl.ones(3, device="cuda")
    side = fl.cuda.Stream()
    for n in range(5):
        x.fill_(n)
        out = f(x)
        side.wait_stream(fl.cuda.current_stream())
        with fl.cuda.stream(side):
            doubled = out * 2
        out.record_stream(side)
        del out
        fl.cuda.current_stream().wait_stream(side)
        assert doubled.tolist() == [2 * (n + 1)] * 3


def test_outputs_outlive_the_function():
    f = compiled(lambda x: x + 1)
    x = fl.ones(1 << 16, device="cuda")
    out = [f(x) for _ in range(3)]
    del f
    fl.compiler.reset()
    gc.collect()
    fl.cuda.empty_cache()
    other = fl.zeros(1 << 17, device="cuda")
    assert all(t.sum().item() == 2 << 16 for t in out) and other.sum().item() == 0


def test_backward_reads_what_forward_left():
    """Activations are not copied: the tangent and the data may be."""
    model = nn.Sequential(Linear(6, 64), nn.GELU(), nn.LayerNorm(64), nn.GELU(), Linear(64, 6)).cuda()
    f = compiled(model)
    x = fl.randn(16, 6, device="cuda")
    held = []
    for n in range(8):
        if n == 4:
            before = figures()
        model.zero_grad()
        held.append(f(x))  # larger than what is copied for being held: a recording for each of two in turn
        held[-1].square().mean().backward()
    after = figures()
    assert after["replayed"] - before["replayed"] == 8
    assert after["copied"] - before["copied"] <= 4 * 4 * (2 * 16 * 6 + 1) * 2


def test_two_forward_runs_before_a_backward():
    def step(f, model, a, b):
        model.zero_grad()
        first, second = f(a), f(b)
        loss = (first * second).sum()
        loss.backward()
        return loss.item(), [p.grad.cpu().numpy() for p in model.parameters()]

    model = nn.Sequential(Linear(6, 8), nn.GELU(), Linear(8, 3)).cuda()
    f = compiled(model)
    data = [fl.randn(5, 6, device="cuda") for _ in range(12)]
    for n in range(0, 12, 2):
        before = figures()
        found, expected = step(f, model, *data[n:n + 2]), step(model, model, *data[n:n + 2])
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
        for a, b in zip(found[1], expected[1]):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert figures()["recorded"] == before["recorded"] and figures()["replayed"] - before["replayed"] == 4


def test_accumulated_gradients():
    """.grad is an output of the backward graph that is held, and added to."""
    def train(f, model):
        for x in data:
            f(x).square().sum().backward()
        return [p.grad.cpu().numpy() for p in model.parameters()]

    data = fl.randn(6, 5, 6, generator=fl.Generator().manual_seed(1)).cuda()
    models = [nn.Sequential(Linear(6, 8), nn.GELU(), Linear(8, 3)).cuda() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    for a, b in zip(train(compiled(models[0]), models[0]), train(models[1], models[1])):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [8, (1 << 18) + 8])  # small outputs are copied, of large ones there are several
def test_results_that_are_the_next_arguments(size):
    f = compiled(lambda x: x * 0.5 + 1)
    x = fl.zeros(size, device="cuda")
    expected = 0.0
    for n in range(16):
        if n == 12:
            before = figures()
        x, expected = f(x), expected * 0.5 + 1
        assert x[-1].item() == expected
    after = figures()
    assert after["recorded"] == before["recorded"] and after["replayed"] - before["replayed"] == 4


@pytest.mark.skipif(fl.cuda.device_count() < 2, reason="one device")
def test_on_another_device():
    f = compiled(lambda x: fl.nn.functional.dropout(x + 1, 0.5))
    x = fl.ones(32, device="cuda:1")
    fl.manual_seed(3)
    found, recorded, replayed = replays(lambda: [f(x).tolist() for _ in range(4)])
    fl.manual_seed(3)
    assert found == [fl.nn.functional.dropout(x + 1, 0.5).tolist() for _ in range(4)]
    assert (recorded, replayed) == (1, 3)
    with fl.cuda.device(1):
        g, out = record(lambda: x * 3)
    x.fill_(2)
    with fl.cuda.device(1):
        g.replay()
    assert out.tolist() == [6] * 32


def test_several_threads():
    f = compiled(lambda x: (x * 2).cumsum(0))
    problems = []

    def work(k):
        x = fl.full((64,), float(k), device="cuda")
        for _ in range(25):
            if f(x)[-1].item() != 128 * k:
                problems.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems


def test_outputs_given_to_other_libraries_stay():
    f = compiled(lambda x: x + 1)
    x = fl.zeros(1 << 19, device="cuda")
    for n in range(3):
        f(x)
    exported = fl.from_dlpack(f(x).__dlpack__())
    for n in range(3):
        f(x.fill_(50 + n))
    assert exported[:3].tolist() == [1, 1, 1]
