"""Steps by sparse gradients are steps by dense ones where the gradient has rows, and leave the others alone.
"""
import pytest

import flambeau as fl
from flambeau import optim
from flambeau.sparse import sparse_coo_tensor

INDICES = [[3, 1, 3]]
VALUES = [[1.0, 2.0], [3.0, 4.0], [0.5, -1.0]]


def gradient():
    return sparse_coo_tensor(INDICES, fl.tensor(VALUES), (5, 2))


def test_sparse_tensor():
    g = gradient()
    assert g.is_sparse and g.shape == (5, 2) and g.layout is fl.sparse_coo
    assert g._nnz() == 3 and not g.is_coalesced()
    c = g.coalesce()
    assert c.indices().tolist() == [[1, 3]] and c.values().tolist() == [[3, 4], [1.5, 1]]
    assert g.to_dense().tolist() == [[0, 0], [3, 4], [0, 0], [1.5, 1], [0, 0]] == c.to_dense().tolist()
    assert (-c).to_dense().tolist()[1] == [-3, -4]
    assert sparse_coo_tensor([[0, 1], [2, 0]], [5.0, 6.0]).to_dense().tolist() == [[0, 0, 5], [6, 0, 0]]
    with pytest.raises(RuntimeError, match="coalesce"):
        g.indices()
    with pytest.raises(RuntimeError, match="expected indices of sizes"):
        sparse_coo_tensor([[0, 1]], [1.0])


@pytest.mark.parametrize("make",
                         [lambda p: optim.SGD(p, lr=0.1), lambda p: optim.Adagrad(p, lr=0.1),
                          lambda p: optim.SGD(p, lr=0.1, maximize=True)])
def test_as_with_dense_gradients(make):
    sparse, dense = fl.ones(5, 2, requires_grad=True), fl.ones(5, 2, requires_grad=True)
    a, b = make([sparse]), make([dense])
    for _ in range(3):
        sparse.grad, dense.grad = gradient(), gradient().to_dense()
        a.step()
        b.step()
    assert fl.allclose(sparse, dense) and sparse[0].tolist() == [1, 1]


def test_sparse_adam():
    p = fl.ones(5, 2, requires_grad=True)
    optimizer = optim.SparseAdam([p], lr=0.1)
    for _ in range(2):
        p.grad = gradient()
        optimizer.step()
    reference = fl.ones(2, 2, requires_grad=True)
    adam = optim.Adam([reference], lr=0.1)
    for _ in range(2):
        reference.grad = gradient().coalesce().values()
        adam.step()
    assert fl.allclose(p[[1, 3]], reference, atol=1e-5) and p[0].tolist() == [1, 1]
    assert optimizer.state[p]["step"] == 2


def test_refuses():
    p = fl.ones(5, 2, requires_grad=True)
    p.grad = gradient()
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        optim.Adam([p]).step()
    with pytest.raises(RuntimeError, match="without momentum"):
        optim.SGD([p], momentum=0.9).step()
