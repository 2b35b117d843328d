"""Mutation, aliases, views and layouts, in kinds that compilers of tensor programs got wrong."""
import flambeau as torch
import pytest
from compilers import values


# A tensor is written from itself --------------------------------------------------------------------------
@pytest.mark.parametrize("n", [2, 5, 64, 700])
def test_copy_of_its_own_transpose(compile_fn, n):
    def flip(x):
        x.copy_(x.t() + 0.0)

    x = torch.arange(float(n * n)).view(n, n)
    want = x.t().clone()
    compile_fn(flip)(x)
    assert torch.equal(x, want)


@pytest.mark.parametrize("n", [3, 100, 10000])
def test_addition_of_its_own_reverse(compile_fn, n):
    def run(x):
        x.add_(x.flip(0) * 1)
        x.mul_(x.roll(1, 0))
        return x

    assert bool((compile_fn(run)(torch.arange(float(n))) == (n - 1.0) ** 2).all())


def test_rows_are_written_from_other_rows(compile_fn):
    def shift(x):
        x[1:] = x[:-1] * 1
        x[0] = x[-1] + x[0]
        return x

    assert values(compile_fn(shift)(torch.tensor([1.0, 2.0, 3.0, 4.0]))) == [4, 1, 2, 3]


def test_index_put_then_reads_of_what_was_put(compile_fn):
    def run(x, index):
        x.index_put_((index,), x[index] * 10)
        y = x.flip(0)
        x.index_add_(0, index, torch.ones(2))
        return y, x.flip(0)

    y, z = compile_fn(run)(torch.arange(4.0), torch.tensor([3, 1]))
    assert values(y) == [30, 2, 10, 0] and values(z) == [31, 2, 11, 0]


def test_index_put_with_accumulation(compile_fn):
    def run(x, index):
        x.index_put_((index,), torch.ones(4), accumulate=True)
        return x + x.sum()

    assert values(compile_fn(run)(torch.zeros(3), torch.tensor([0, 2, 0, 0]))) == [7, 4, 5]


# Views of what is differentiated --------------------------------------------------------------------------
@pytest.mark.parametrize(
    "view, weights",
    [
        (lambda b: b[1::2], [1, 2, 1, 2, 1, 2]),
        (lambda b: b[:2], [2, 2, 1, 1, 1, 1]),
        (lambda b: b.view(2, 3)[1], [1, 1, 1, 2, 2, 2]),
    ],
)
def test_in_place_on_a_view_of_a_non_leaf(compile_fn, view, weights):
    def double(v):
        v.mul_(2)
        return v + 0

    x = torch.arange(6.0, requires_grad=True)
    base = x * 3
    out = compile_fn(double)(view(base))
    assert values(base) == [3 * i * w for i, w in enumerate(weights)]
    base.sum().backward()
    assert values(x.grad) == [3 * w for w in weights] and out.requires_grad


def test_in_place_on_an_output_of_a_view(compile_fn):
    def run(x):
        base = x * 1
        rows = base.unbind(0)
        base[0].add_(10)
        return base, base.sum() + len(rows)

    x = torch.ones(2, 2, requires_grad=True)
    base, total = compile_fn(run)(x)
    total.backward()
    assert values(base) == [[11, 11], [1, 1]] and values(x.grad) == [[1, 1], [1, 1]]


# Storage that grows ---------------------------------------------------------------------------------------
def test_resize_of_an_argument(compile_fn):
    def grow(x):
        x.resize_(2, 4)
        x[1] = 7
        return x.shape[1]

    x = torch.arange(4.0)
    assert compile_fn(grow)(x) == 4 and values(x) == [[0, 1, 2, 3], [7, 7, 7, 7]]


def test_resize_of_an_alias(compile_fn):
    def run(x):
        base = x * 2
        alias = base.view(-1)
        alias.resize_(1)
        alias.add_(5)
        return base, alias

    base, alias = compile_fn(run)(torch.tensor([[1.0, 2.0]]))
    assert values(base) == [[7, 4]] and values(alias) == [7]


# The same expression in two modes -------------------------------------------------------------------------
def test_equal_expressions_in_two_modes_are_two_results(compile_fn):
    def run(x):
        with torch.no_grad():
            a = x * 2
        b = x * 2
        with torch.no_grad():
            c = x * 2
        return a, b, c

    a, b, c = compile_fn(run)(torch.ones(2, requires_grad=True))
    assert [t.requires_grad for t in (a, b, c)] == [False, True, False]
    assert len({id(a), id(b), id(c)}) == 3 and len({t.data_ptr() for t in (a, b, c)}) == 3


def test_equal_expressions_around_a_mutation(compile_fn):
    def run(x):
        a = x + 1
        x.mul_(2)
        b = x + 1
        a.add_(100)
        return a, b

    a, b = compile_fn(run)(torch.tensor([1.0]))
    assert values([a, b]) == [[102], [3]]


def test_random_tensors_are_not_merged(compile_fn):
    a, b = compile_fn(lambda: (torch.rand(8), torch.rand(8)))()
    assert not torch.equal(a, b)


# Layouts --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "make",
    [lambda x: torch.roll(x, 1, 1), lambda x: x + 1, lambda x: x.clone(), lambda x: x.flip(2)],
    ids=["roll", "add", "clone", "flip"],
)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_memory_is_read_as_eager_lays_it_out(compile_fn, make, layout):
    def read(x):
        y = make(x)
        return y, torch.as_strided(y, (6, 2), (2, 1), 0)

    x = torch.arange(24.0).view(1, 4, 2, 3).to(memory_format=layout)
    y, flat = compile_fn(read)(x)
    want = make(x)
    assert y.stride() == want.stride() and torch.equal(flat, torch.as_strided(want, (6, 2), (2, 1), 0))


def test_as_strided_with_overlap(compile_fn):
    out = compile_fn(lambda x: torch.as_strided(x * 2, (3, 2), (1, 1), 1).sum(1))(torch.arange(5.0))
    assert values(out) == [6, 10, 14]


# Expanded memory ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "write, want",
    [
        (lambda t, i: t.index_add(0, i, torch.ones(3, 2)), [[2, 2], [0, 0], [1, 1]]),
        (lambda t, i: t.scatter(0, i.unsqueeze(1), 5.0), [[5, 0], [0, 0], [5, 0]]),
        (lambda t, i: t.index_fill(0, i, 3.0), [[3, 3], [0, 0], [3, 3]]),
        (lambda t, i: t.index_copy(0, i[1:], torch.ones(2, 2)), [[1, 1], [0, 0], [1, 1]]),
    ],
    ids=["index_add", "scatter", "index_fill", "index_copy"],
)
def test_writes_to_a_copy_of_an_expanded_tensor(compile_fn, write, want):
    def run(index):
        return write(torch.zeros(1, 2).expand(3, -1), index)

    assert values(compile_fn(run)(torch.tensor([0, 2, 0]))) == want


def test_in_place_on_an_expanded_tensor_is_refused(compile_fn):
    def run(x):
        y = x.expand(3, 2)
        y.add_(1)
        return y

    with pytest.raises(RuntimeError):
        compile_fn(run)(torch.zeros(1, 2))
