"""Sparse tensors give what plain ones give, with gradients; what does not take them says so."""
import copy
import io
import pickle

import numpy as np
import pytest

import flambeau as fl

PLACES = [[0, 1, 1, 1], [2, 0, 2, 0]]
DENSE = fl.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def sparse(values=(3.0, 4.0, 5.0, 1.0)):
    """[[0, 0, 3], [5, 0, 5]], one place of which is there twice."""
    return fl.sparse_coo_tensor(PLACES, values if isinstance(values, fl.Tensor) else list(values), (2, 3))


def plain(x):
    return x.to_dense() if x.is_sparse else x


@pytest.mark.parametrize("function, is_sparse", [
    (lambda s: s * 2, True), (lambda s: 2 * s, True), (lambda s: s / 4, True), (lambda s: -s, True),
    (lambda s: s.abs(), True), (lambda s: fl.sqrt(s), True), (lambda s: s.sin(), True),
    (lambda s: s**2, True),
    (lambda s: s + s, True), (lambda s: fl.add(s, s, alpha=3), True), (lambda s: s - s * 3, True),
    (lambda s: fl.ones(2, 3) + s, False), (lambda s: fl.ones(2, 3) - s, False),
    (lambda s: s * DENSE.t(), True), (lambda s: DENSE.t() * s, True), (lambda s: s * s, True),
    (lambda s: s * DENSE[:, 0], True),
    (lambda s: s @ DENSE, False), (lambda s: fl.mm(s, DENSE), False), (lambda s: s @ DENSE[:, 0], False),
    (lambda s: DENSE.t()[:, :2] @ s, False), (lambda s: s @ s.t(), True),
    (lambda s: fl.addmm(fl.ones(2, 2), s, DENSE, beta=0.5, alpha=2), False),
    (lambda s: fl.nn.functional.linear(s, DENSE.t(), fl.ones(2)), False),
    (lambda s: s.t(), True), (lambda s: s.T, True), (lambda s: s.transpose(0, 1), True),
    (lambda s: s.permute(1, 0), True), (lambda s: s[1], True), (lambda s: s.select(1, -1), True),
    (lambda s: s.index_select(1, fl.tensor([2, 0, 2])), True), (lambda s: fl.cat([s, s]), True),
    (lambda s: fl.cat([s, s], 1), True), (lambda s: fl.zeros_like(s), True),
    (lambda s: s.sum(), False), (lambda s: s.sum(0), True), (lambda s: s.sum((0, 1)), False),
    (lambda s: s.norm(), False), (lambda s: s.double(), True), (lambda s: s.to(fl.float16), True),
    (lambda s: s.clone(), True), (lambda s: copy.deepcopy(s), True), (lambda s: s.detach(), True)])
def test_as_dense(function, is_sparse):
    s = sparse()
    got, expected = function(s), function(s.to_dense())
    assert got.is_sparse == is_sparse and got.shape == expected.shape and got.dtype is expected.dtype
    np.testing.assert_allclose(plain(got).numpy(), expected.numpy(), rtol=1e-6)


def test_made_of_a_dense_tensor():
    dense = sparse().to_dense()
    s = dense.to_sparse()
    assert s.is_coalesced() and s.indices().tolist() == [[0, 1, 1], [2, 0, 2]]
    assert s.values().tolist() == [3, 5, 5]
    rows = fl.tensor([[0.0, 0], [1, 0], [0, 2]]).to_sparse(1)
    assert rows.indices().tolist() == [[1, 2]] and rows.values().tolist() == [[1, 0], [0, 2]]
    assert DENSE.t().sparse_mask(s).to_dense().tolist() == [[0, 0, 5], [2, 0, 6]]
    assert fl.sparse_coo_tensor((2, 3))._nnz() == 0
    assert fl.sparse.FloatTensor([[0]], fl.ones(1), (2,)).shape == (2,)
    hybrid = fl.sparse_coo_tensor([[0, 2, 0]], fl.ones(3, 2), (3, 2))
    assert hybrid.sum(1).to_dense().tolist() == [4, 0, 2] and hybrid.sum(0).tolist() == [3, 3]


def test_gradients():
    values, dense = fl.tensor([3.0, 4.0, 5.0, 1.0], requires_grad=True), DENSE.clone().requires_grad_()
    s = sparse(values)
    assert s.requires_grad
    weights = fl.tensor([[1.0, 2.0], [3.0, 4.0]])
    (fl.sparse.mm(s, dense) * weights).sum().backward()
    assert values.grad.tolist() == [17, 11, 39, 11] and dense.grad.tolist() == [[15, 20], [0, 0], [18, 26]]
    values.grad = None
    fl.sparse.sum(sparse(values), 0).to_dense().square().sum().backward()
    assert values.grad.tolist() == [16, 10, 16, 10]


def test_a_sparse_leaf_has_a_sparse_gradient():
    s = sparse().coalesce().requires_grad_()
    assert s.requires_grad and s.is_leaf and not s._values().requires_grad
    for total in (1, 2):
        (s @ DENSE).sum().backward()
        assert s.grad.is_sparse and s.grad.values().tolist() == [11 * total, 3 * total, 11 * total]
    s.grad = None
    s.mul(3).backward(fl.ones(2, 3))
    assert s.grad.values().tolist() == [3, 3, 3]


@pytest.mark.parametrize("function, layout", [
    (lambda s: s, fl.sparse_csr), (lambda s: s * 2, fl.sparse_csr), (lambda s: s + s, fl.sparse_csr),
    (lambda s: s.t(), fl.sparse_csc), (lambda s: s.T, fl.sparse_csc), (lambda s: s.t().t(), fl.sparse_csr),
    (lambda s: s.to_sparse_csc(), fl.sparse_csc), (lambda s: s.to_sparse(), fl.sparse_coo),
    (lambda s: s @ s.t(), fl.sparse_csr), (lambda s: s @ DENSE, fl.strided), (lambda s: s.sum(), fl.strided),
    (lambda s: s.clone(), fl.sparse_csr), (lambda s: s.double(), fl.sparse_csr),
    (lambda s: s[1], fl.sparse_coo),
    (lambda s: pickle.loads(pickle.dumps(s)), fl.sparse_csr)])
def test_compressed_matrices(function, layout):
    for s in (sparse().to_sparse_csr(), fl.sparse_csr_tensor([0, 1, 3], [2, 2, 0], [3.0, 5.0, 5.0], (2, 3))):
        got, expected = function(s), function(sparse().to_dense())
        assert got.layout is layout
        np.testing.assert_allclose(got.to_dense().numpy(), expected.to_dense().numpy(), rtol=1e-6)


def test_parts_of_compressed_matrices():
    rows, columns = sparse().to_sparse_csr(), sparse().to_sparse_csc()
    assert rows.crow_indices().tolist() == [0, 1, 3] and rows.col_indices().tolist() == [2, 0, 2]
    assert columns.ccol_indices().tolist() == [0, 1, 1, 3] and columns.row_indices().tolist() == [1, 0, 1]
    assert columns.values().tolist() == [5, 3, 5] and rows.is_sparse_csr and not rows.is_sparse
    assert fl.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0]).shape == (2, 2)
    assert repr(rows) == ("tensor(crow_indices=tensor([0, 1, 3]),\n       col_indices=tensor([2, 0, 2]),\n"
                          "       values=tensor([3., 5., 5.]), size=(2, 3), nnz=3,\n"
                          "       layout=torch.sparse_csr)")
    for starts, message in (([0, 2], "plus one"), ([0, 3, 2], "go up"), ([0, 1, 2], "go up")):
        with pytest.raises(RuntimeError, match=message):
            fl.sparse_csr_tensor(starts, [0, 1, 2], [1.0, 2.0, 3.0], (2, 3))
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        fl.sparse_csr_tensor([0, 1, 2], [0, 2], [1.0, 2.0], (2, 2))


def test_products_of_what_is_there():
    s = sparse().to_sparse_csr().requires_grad_()
    assert fl.sparse.mm(s, DENSE, "mean").tolist() == [[15, 18], [15, 20]]
    assert fl.sparse.mm(s, DENSE, "amin").tolist() == [[15, 18], [5, 10]]
    empty = fl.sparse_coo_tensor([[0], [1]], [-2.0], (2, 3))
    assert fl.sparse.mm(empty, DENSE, "amax").tolist() == [[-6, -8], [0, 0]]
    got = fl.sparse.sampled_addmm(s, DENSE[:2], DENSE.t(), beta=0.5, alpha=2)
    assert got.layout is fl.sparse_csr and got.values().tolist() == [35.5, 24.5, 80.5]
    got.values().sum().backward()
    assert s.grad.values().tolist() == [0.5, 0.5, 0.5]


def table(kind, **options):
    made = kind(4, 2, sparse=True, **options)
    with fl.no_grad():
        made.weight.copy_(fl.arange(8.0).view(4, 2))
    return made


def test_embeddings_have_sparse_gradients():
    rows = table(fl.nn.Embedding, padding_idx=1)
    for total in (1, 2):
        rows(fl.tensor([[0, 1], [0, 2]])).sum().backward()
        assert rows.weight.grad.is_sparse and rows.weight.grad._indices().tolist() == [[0, 0, 2]]
        assert rows.weight.grad._values().tolist() == [[total, total]] * 3
    rows.weight.register_hook(lambda g: g * 2)
    rows.zero_grad()
    loss = (rows(fl.tensor([3])) + rows(fl.tensor([2])) @ rows.weight.t()[:2, :2]).sum()
    loss.backward()  # one gradient is dense
    assert not rows.weight.grad.is_sparse
    assert rows.weight.grad.tolist() == [[8, 10], [8, 10], [4, 8], [2, 2]]
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        table(fl.nn.Embedding, scale_grad_by_freq=True)(fl.tensor([0]))


def test_bags_have_sparse_gradients():
    bag = table(fl.nn.EmbeddingBag, mode="mean", padding_idx=1)
    out = bag(fl.tensor([[0, 1], [0, 2]]))
    assert out.tolist() == [[0, 1], [2, 3]]
    out.sum().backward()
    assert bag.weight.grad._indices().tolist() == [[0, 0, 2]]
    assert bag.weight.grad._values().tolist() == [[1, 1], [0.5, 0.5], [0.5, 0.5]]
    bag, weights = table(fl.nn.EmbeddingBag, mode="sum"), fl.tensor([[1.0, 2], [3, 4]], requires_grad=True)
    bag(fl.tensor([[0, 1], [0, 2]]), per_sample_weights=weights).sum().backward()
    assert bag.weight.grad._values().tolist() == [[1, 1], [2, 2], [3, 3], [4, 4]]
    assert weights.grad.tolist() == [[1, 5], [1, 9]]


@pytest.mark.parametrize("optimizer, expected", [  # PyTorch's
    ("SGD", [[0, 0.2160], [1.0240, 1.5360], [2.56, 3.2], [4.8, 5.6]]),
    ("SparseAdam", [[0, 0.7016], [1.7006, 2.7004], [3.8142, 4.8142], [5.9256, 6.9256]]),
    ("Adagrad", [[0, 0.7805], [1.7758, 2.7744], [3.8302, 4.83], [5.9, 6.9]])])
def test_optimizers_take_the_gradients_of_embeddings(optimizer, expected):
    rows = table(fl.nn.Embedding)
    steps = getattr(fl.optim, optimizer)(rows.parameters(), lr=0.1)
    for k in range(3):
        steps.zero_grad()
        rows(fl.tensor([[0, 1], [0, 2 + k % 2]])).square().sum().backward()
        steps.step()
    np.testing.assert_allclose(rows.weight.detach().numpy(), expected, atol=6e-5)


def test_clipping_a_sparse_gradient():
    rows = table(fl.nn.Embedding)
    (rows(fl.tensor([0, 1])) * 2).sum().backward()
    assert fl.nn.utils.clip_grad_norm_(rows.parameters(), 1.0).item() == 4
    np.testing.assert_allclose(rows.weight.grad._values().numpy(), 0.5, rtol=1e-5)


def test_softmax_is_of_what_is_there():
    s = fl.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 3.0, -2.0], (2, 3))
    got = fl.sparse.softmax(s, 1).to_dense()
    np.testing.assert_allclose(got.numpy(), [[0.11920292, 0, 0.88079708], [0, 1, 0]], rtol=1e-6)
    np.testing.assert_allclose(fl.sparse.log_softmax(s, 0).values().numpy(), [0, 0, 0], atol=1e-7)


def test_a_network_on_a_graph_learns():
    fl.manual_seed(0)
    ring = [[i for i in range(6) for _ in range(2)], [(i + d) % 6 for i in range(6) for d in (-1, 1)]]
    adjacency = fl.sparse_coo_tensor(ring, fl.full((12,), 0.5), (6, 6))
    x, layer = fl.randn(6, 4), fl.nn.Linear(4, 2)
    target = adjacency.to_dense() @ x @ fl.randn(4, 2)
    optimizer = fl.optim.Adam(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (fl.spmm(adjacency, layer(x)) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


def test_in_place():
    s, expected = sparse(), sparse().to_dense()
    for change in (lambda x, y: x.mul_(3), lambda x, y: x.add_(y, alpha=2), lambda x, y: x.sub_(y),
                   lambda x, y: x.div_(4), lambda x, y: x.copy_(y), lambda x, y: x.zero_()):
        assert change(s, sparse()) is s
        change(expected, sparse().to_dense())
        assert s.to_dense().tolist() == expected.tolist()
    dense = fl.ones(2, 3)
    assert dense.add_(sparse(), alpha=-2) is dense and dense.tolist() == [[1, 1, -5], [-9, 1, -9]]
    with pytest.raises(RuntimeError, match="shape"):
        fl.ones(3).add_(sparse())
    with pytest.raises(RuntimeError, match="between dense and sparse"):
        dense.copy_(sparse())


def test_buffers_of_modules():
    class Graph(fl.nn.Module):
        def __init__(self, adjacency):
            super().__init__()
            self.register_buffer("adjacency", adjacency)

        def forward(self, x):
            return fl.sparse.mm(self.adjacency, x)

    one, other = Graph(sparse()), Graph(sparse([0.0, 0.0, 0.0, 0.0]))
    other.load_state_dict(one.state_dict())
    assert fl.equal(other(DENSE), one(DENSE)) and fl.equal(fl.compile(one)(DENSE), one(DENSE))
    assert copy.deepcopy(one).double().adjacency.dtype is fl.float64


def test_printed():
    assert repr(sparse()) == ("tensor(indices=tensor([[0, 1, 1, 1],\n                       [2, 0, 2, 0]]),\n"
                              "       values=tensor([3., 4., 5., 1.]),\n"
                              "       size=(2, 3), nnz=4, layout=torch.sparse_coo)")


def test_files():
    file = io.BytesIO()
    fl.save({"s": sparse()}, file)
    file.seek(0)
    for back in (fl.load(file)["s"], pickle.loads(pickle.dumps(sparse()))):
        assert back.is_sparse and not back.is_coalesced()
        assert back.to_dense().tolist() == [[0, 0, 3], [5, 0, 5]]


@pytest.mark.parametrize("function, error, message", [
    (lambda s: s.cos(), NotImplementedError, "cos"),
    (lambda s: s.view(3, 2), NotImplementedError, "to_dense"),
    (lambda s: s + fl.ones(2, 3), RuntimeError, "add\\(dense, sparse\\)"),
    (lambda s: s + 1, RuntimeError, "add"),
    (lambda s: s @ s, RuntimeError, "cannot be multiplied"), (lambda s: s.numpy(), TypeError, "to_dense"),
    (lambda s: s**-1, NotImplementedError, "power"), (lambda s: s / fl.ones(2, 3), RuntimeError, "division"),
    (lambda s: s[2], IndexError, "out of range"), (lambda s: s[0:1], NotImplementedError, "one int"),
    (lambda s: fl.ones(2).crow_indices(), RuntimeError, "got Strided"),
    (lambda s: s.to_sparse_csr().ccol_indices(), RuntimeError, "got sparse_csr"),
    (lambda s: s.to_sparse(layout=fl.sparse_bsr), NotImplementedError, "sparse_bsr"),
    (lambda s: fl.sparse.mm(s, DENSE, "max"), ValueError, "amax"),
    (lambda s: fl.sparse.sampled_addmm(s, DENSE, DENSE), RuntimeError, "does not fit"),
    (lambda s: s @ DENSE.double(), RuntimeError, "same dtype"),
    (lambda s: fl.ones(2).to_sparse(layout=fl.sparse_csr), NotImplementedError, "sparse_csr")])
def test_refuses(function, error, message):
    with pytest.raises(error, match=message):
        function(sparse())


def test_invariants():
    assert fl.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,))._nnz() == 2
    with fl.sparse.check_sparse_tensor_invariants():
        with pytest.raises(RuntimeError, match="found index 5"):
            fl.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,))
    with pytest.raises(RuntimeError, match="negative index -1"):
        fl.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,), check_invariants=True)
    with pytest.raises(RuntimeError, match="does not fit"):
        fl.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 3))


def test_second_names_of_operators():
    s = fl.tensor([[0.0, 0.5], [0.0, 0.0]]).to_sparse()
    assert fl.special.erfinv(s).to_dense().equal(s.to_dense().erfinv())
    assert fl.arctan(s).to_dense().equal(s.to_dense().atan())
