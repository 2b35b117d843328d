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
    (lambda s: s.requires_grad_(), NotImplementedError, "values"),
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
