"""Integers that vary become symbols of a graph at their second value."""
import pytest

import flambeau as fl

pytestmark = pytest.mark.skipif(not fl._C._has_capture, reason="capture needs another version of CPython")


def graphs(compiled):
    return len(compiled.explain()["graphs"])


def test_an_argument():
    def f(x, n):
        return (x * n + n // 2)[:, :n], n + 1, n - 7

    compiled, x = fl.compile(f), fl.arange(150.0).reshape(3, 50)
    for n in (3, 5, 9, 12, 20, 1, 0, -3, 40):
        got, expected = compiled(x, n), f(x, n)
        assert fl.equal(got[0], expected[0]) and got[1:] == expected[1:] and type(got[1]) is int
    assert graphs(compiled) == 5  # 3; any of 2 or more; 1; 0; -3


def test_a_position_in_a_cache():
    class Cache:
        def __init__(self):
            self.keys, self.position = fl.zeros(2, 32, 4), 0

        def update(self, x):
            self.keys[:, self.position:self.position + x.shape[1]] = x
            self.position += x.shape[1]
            return self.keys[:, :self.position]

    def step(cache, x):
        return cache.update(x).sum(1) * 2

    compiled, ours, plain = fl.compile(step), Cache(), Cache()
    for k in range(20):
        x = fl.full((2, 1, 4), float(k))
        assert fl.equal(compiled(ours, x), step(plain, x))
        assert ours.position == plain.position and type(ours.position) is int
    assert graphs(compiled) <= 4 and not compiled.explain()["breaks"]


def test_what_needs_the_number_follows_it():
    def f(x, n):
        for k in range(n):
            x = x + k
        return x, f"{n}", {n: n}, [0] * n

    compiled = fl.compile(f)
    for n in (2, 3, 4, 3, 2):
        got, expected = compiled(fl.ones(2), n), f(fl.ones(2), n)
        assert fl.equal(got[0], expected[0]) and got[1:] == expected[1:]


def test_dynamic_false_keeps_numbers():
    compiled = fl.compile(lambda x, n: x * n, dynamic=False)
    for n in (3, 4, 5):
        assert compiled(fl.ones(1), n).item() == n
    assert graphs(compiled) == 3


ONES = {
    "elementwise": (lambda x: x * 2 + 1, 1),
    "reduction": (lambda x: (x.sum(0), x.mean()), 1),
    "two values": (lambda x: x.exp() + x, 1),
    "flip": (lambda x: x + x.flip(0), None),
    "squeeze": (lambda x: x.squeeze(0), None),
    "squeeze of all": (lambda x: (x * 2).squeeze(), None),
    "broadcast": (lambda x: x + fl.ones(3), None),
    "outer product": (lambda x: x[:, None] * x, None),
    "branch": (lambda x: x + 1 if x.shape[0] == 1 else x - 1, None),
    "the size itself": (lambda x: (x * 2, x.shape[0], list(x.shape)), None),
    "variance": (lambda x: x.var(0), None),
    "view": (lambda x: x.view(-1, 1).expand(-1, 2), None),
    "contiguous or not": (lambda x: x[::1].contiguous(), None),
}


@pytest.mark.parametrize("f, graphs", ONES.values(), ids=ONES)
def test_sizes_of_one_with_dynamic(f, graphs):
    compiled = fl.compile(f, dynamic=True)
    for n in (1, 3, 2, 1, 3, 7):
        x = fl.arange(1.0, n + 1)
        try:
            want = f(x)
        except RuntimeError as error:
            with pytest.raises(type(error)):
                compiled(x)
            continue
        got = compiled(x)
        for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, want))):
            if isinstance(a, fl.Tensor):
                assert a.shape == b.shape and a.tolist() == b.tolist() or (a != a).all() and (b != b).all(), n
            else:
                assert a == b
    if graphs:
        assert len(compiled.explain()["graphs"]) == graphs


@pytest.mark.parametrize("f", [
    lambda x, y: x @ y, lambda x, y: fl.cat([x, y.mT]), lambda x, y: (x * y.mT).sum(1),
    lambda x, y: x.reshape(-1) * 2, lambda x, y: x.squeeze(1), lambda x, y: fl.softmax(x, 0) + y.mT[0]])
def test_sizes_of_one_in_matrices(f):
    compiled = fl.compile(f, dynamic=True)
    for rows, columns in ((1, 1), (1, 4), (3, 1), (3, 4), (1, 4), (1, 1), (5, 2)):
        x, y = fl.arange(1.0, rows * columns + 1).reshape(rows, columns), fl.ones(columns, rows)
        want, got = f(x, y), compiled(x, y)
        assert got.shape == want.shape and got.stride() == want.stride(), (rows, columns)
        assert fl.allclose(got, want), (rows, columns)


def test_sizes_of_one_with_gradients():
    compiled = fl.compile(lambda x: (x * x).sum(), dynamic=True)
    for n in (1, 3, 1, 2):
        x = fl.arange(1.0, n + 1).requires_grad_()
        compiled(x).backward()
        assert x.grad.tolist() == [2.0 * k for k in range(1, n + 1)]


class Counter(fl.nn.Module):
    def __init__(self):
        super().__init__()
        self.counter, self.kind = 0, 3

    def forward(self, x):
        self.counter += 1
        return x * self.kind + self.counter


def test_counter_of_a_module():
    model = Counter()
    compiled = fl.compile(model)
    assert [compiled(fl.zeros(1)).item() for _ in range(10)] == list(range(1, 11)) and model.counter == 10
    assert len(compiled.explain()["graphs"]) == 2
    for kind in (4, 5, 6):  # the program does not change it: it says what the module is
        model.kind = kind
        assert compiled(fl.ones(1)).item() == kind + model.counter
    assert len(compiled.explain()["graphs"]) == 5


@pytest.mark.parametrize("start", [0, 1, 5])
def test_numbers_from_zero(start):
    def f(x, n):
        return x * n, fl.zeros(n), x[:n], n + 1

    compiled = fl.compile(f)
    x = fl.arange(4.0)
    for n in (start, 3, 0, 1, 2, 7, 1, 0):
        for a, b in zip(compiled(x, n), f(x, n)):
            assert a == b if isinstance(a, int) else a.shape == b.shape and a.tolist() == b.tolist(), n


def test_numbers_that_graphs_need_are_no_symbols():
    compiled = fl.compile(lambda x, d: x.sum(d))
    x = fl.arange(24.0).reshape(2, 3, 4)
    for d in (0, 1, 2, 0, 1, 2):
        assert fl.equal(compiled(x, d), x.sum(d))
    assert len(compiled.explain()["graphs"]) == 3


def test_statistics_over_all_batches_in_one_graph():
    model, plain = (fl.nn.BatchNorm1d(2, momentum=None) for _ in range(2))
    compiled = fl.compile(model, fullgraph=True)
    for k in range(4):
        spread = fl.tensor([[-1.0, -2.0], [1.0, 2.0], [0.0, 0.0]]) * (k + 1)
        x = spread + fl.tensor([1.0 + 2 * k, 10.0 + 20 * k])
        assert fl.equal(compiled(x), plain(x))
    for a, b in zip(model.buffers(), plain.buffers()):
        assert fl.equal(a, b)
    assert fl.allclose(model.running_mean, fl.tensor([4.0, 40.0])) and graphs(compiled) == 1
