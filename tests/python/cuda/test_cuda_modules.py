"""What is written in Python over operators stays on the device that it is given."""
import pytest

import flambeau as fl
from flambeau import _torchvision, distributions as D


def on_device(values):
    return fl.tensor(values).cuda()


@pytest.mark.parametrize("make", [
    lambda x: D.Normal(x, 1.0), lambda x: D.Uniform(0.0, x), lambda x: D.Gamma(x, 2.0),
    lambda x: D.Beta(x, x),
    lambda x: D.StudentT(x), lambda x: D.Poisson(x), lambda x: D.VonMises(x, 2.0),
    lambda x: D.Bernoulli(x / 4),
    lambda x: D.Binomial(5, x / 4), lambda x: D.Categorical(x), lambda x: D.OneHotCategorical(x),
    lambda x: D.Multinomial(3, x), lambda x: D.Dirichlet(x), lambda x: D.Wishart(5.0, x.diag()),
    lambda x: D.LKJCholesky(3, x), lambda x: D.MultivariateNormal(x, x.diag()), lambda x: D.Geometric(x / 4)],
    ids=lambda make: None)
def test_draws_and_densities(make):
    d = make(on_device([1.0, 2.0, 3.0]))
    draws = d.sample((2,))
    assert draws.is_cuda and draws.shape == (2, *d.batch_shape, *d.event_shape)
    density = d.log_prob(draws)
    assert density.is_cuda and bool(density.isfinite().all())


def test_sparse():
    dense = on_device([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    x = on_device([[1.0], [2.0], [3.0]]).requires_grad_()
    s = dense.to_sparse()
    out = s @ x
    assert out.is_cuda and out.tolist() == [[4], [10]]
    out.sum().backward()
    assert x.grad.tolist() == [[1], [2], [3]]
    for got, expected in ((s + s, 2 * dense), (s.t(), dense.t()), (fl.cat([s, s]), fl.cat([dense, dense])),
                          (s.sum(0), dense.sum(0)), (s[1], dense[1])):
        assert got.is_cuda and got.to_dense().tolist() == expected.tolist()
    assert fl.sparse.softmax(s, 1).to_dense()[0].tolist() == [0, 1,
                                                              0] and s.cpu().to_dense().device.type == "cpu"


def test_torchvision_operators():
    boxes, scores = on_device([[0.0, 0, 2, 2], [0.0, 0, 2, 2.1], [3.0, 3, 4, 4]]), on_device([0.5, 0.9, 0.1])
    assert _torchvision.nms(boxes, scores, 0.5).tolist() == [1, 2]
    images, rois = fl.arange(16.0).reshape(1, 1, 4, 4).cuda(), on_device([[0.0, 0, 0, 4, 4]])
    assert _torchvision.roi_align(images, rois, 1.0, 2, 2, 2, True).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    assert _torchvision.roi_pool(images, rois, 1.0, 1, 1)[0].tolist() == [[[[15]]]]


def test_accelerator():
    assert fl.accelerator.is_available() and fl.accelerator.current_accelerator() == fl.device("cuda")
    assert fl.accelerator.device_count() == fl.cuda.device_count()
    assert fl.accelerator.current_device_index() == 0
    fl.accelerator.synchronize()
    before = fl.accelerator.memory_allocated()
    x = fl.ones(1000, device="cuda")
    assert fl.accelerator.memory_allocated() >= before + 4000 and x.is_cuda
