"""torchvision's operators, against results of torchvision 0.30; and operators of torch.library."""
import numpy as np
import pytest

import flambeau as fl
from flambeau import _torchvision, library
from flambeau._ops import ops

BOXES = fl.tensor([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 9, 10], [21, 19, 31, 29.0]])
IMAGES = fl.tensor([float(i % 17) for i in range(120)]).reshape(2, 2, 6, 5)
ROIS = fl.tensor([[0, 0.0, 0.0, 4.0, 5.0], [1, 1.0, 0.5, 3.0, 4.0]])


@pytest.mark.parametrize("threshold, expected",
                         [(0.3, [1, 4]), (0.5, [1, 4]), (0.7, [1, 3, 4, 2]), (0.9, [1, 3, 4, 0, 2])])
def test_nms(threshold, expected):
    scores = fl.tensor([0.5, 0.9, 0.3, 0.8, 0.6])
    assert _torchvision.nms(BOXES, scores, threshold).tolist() == expected
    assert _torchvision.nms(fl.zeros(0, 4), fl.zeros(0), threshold).tolist() == []
    with pytest.raises(RuntimeError, match="2d tensor with 4 columns"):
        _torchvision.nms(fl.zeros(3), scores, threshold)


@pytest.mark.parametrize("aligned, ratio, expected", [
    (True, 2,
     [2.85, 4.4, 12.85, 8.025, 7.35, 8.9, 8.85, 10.4, 12.7, 13.5, 5.675, 6.475, 8.7, 9.5, 12.725, 8.0]),
    (False, -1,
     [5.8, 7.4, 10.7, 4.65, 6.05, 7.65, 8.825, 9.15, 11.875, 12.675, 5.7, 6.5, 10.935, 8.675, 8.5, 2.5]),
    (False, 2,
     [5.8, 7.4, 10.7, 4.65, 6.05, 7.65, 8.825, 9.15, 11.875, 11.57, 5.7, 6.5, 10.935, 9.0575, 8.5, 3.35]),
])
def test_roi_align(aligned, ratio, expected):
    images = IMAGES.clone().requires_grad_()
    got = _torchvision.roi_align(images, ROIS, 0.8, 2, 2, ratio, aligned)
    np.testing.assert_allclose(got.detach().flatten().numpy(), expected, rtol=1e-5)
    got.sum().backward()
    np.testing.assert_allclose(images.grad.sum((2, 3)).numpy(), 4, rtol=1e-5)


def test_samples_at_the_border():
    rois = fl.tensor([[0, -1.5, -1.5, 2.5, 2.5], [0, 2.5, 3.5, 6.5, 7.5]])
    got = _torchvision.roi_align(IMAGES[:1, 1:], rois, 1.0, 2, 2, 1, True)
    assert got.flatten().tolist() == [13, 14, 1, 2, 2, 3, 7, 8]


def test_position_sensitive_pooling():
    images = fl.tensor([float(i % 17) for i in range(240)]).reshape(2, 4, 6, 5)
    rois = fl.tensor([[0, 0, 0, 4, 5.0], [1, 1, 0.5, 3, 4], [0, -0.625, -1, 3, 4]])
    aligned, channels = _torchvision.ps_roi_align(images, rois, 0.8, 2, 2, 2)
    np.testing.assert_allclose(aligned.flatten().numpy(),
                               [2.85, 8.9, 4.85, 4.525, 4.7, 8.3, 6.675, 3.475, 0.54375,
                                                           12.975, 7.34375, 10.690625], rtol=1e-5)
    assert aligned.shape == (3, 1, 2, 2) and channels.tolist() == [[[[0, 1], [2, 3]]]] * 3
    pooled, channels = _torchvision.ps_roi_pool(images, rois, 0.8, 2, 2)
    assert pooled.flatten().tolist() == [3, 8.5, 5, 6.25, 4.5, 9, 10, 6, 0, 13.5, 8, 13]
    assert channels.tolist() == [[[[0, 1], [2, 3]]]] * 3
    with pytest.raises(RuntimeError, match="must be a multiple of"):
        _torchvision.ps_roi_pool(images, rois, 0.8, 3, 2)


def test_deform_conv2d():
    def ramp(count, *shape, of):
        return fl.tensor([of(i) for i in range(count)]).reshape(shape).requires_grad_()

    images = ramp(40, 1, 2, 4, 5, of=lambda i: float(i % 7))
    weight = ramp(16, 2, 2, 2, 2, of=lambda i: float(i % 5 - 2))
    offset = ramp(48, 1, 8, 2, 3, of=lambda i: (i % 9 - 4) / 4)
    mask = ramp(24, 1, 4, 2, 3, of=lambda i: (i % 3) / 2)
    got = _torchvision.deform_conv2d(images, weight, offset, mask, fl.tensor([1.0, -1.0]), 2, 2, 1, 1, 2, 2,
                                     1, 1, True)
    assert got.flatten().tolist() == [1, 0.875, -5.5, 1, -6.125, 1.125, -1, -5.875, 1.875, -1, 3.375, 0.875]
    got.sum().backward()
    expected = [
        (images,
         [0, 0, 0, -0.1875, -0.5625, 0.375, 0, 0.375, 0.3125, -0.1875, 0, -0.46875, -0.15625, -0.625, -0.75,
                  0, -0.03125, -0.84375, -0.25, -1.25]),
        (offset, [0, 3.75, 11.75, 0, -1.375, -13.5]), (mask, [-1, -10, -3.625, -2, -5.5, 2])]
    for tensor, sums in expected:
        np.testing.assert_allclose(tensor.grad.sum((0, 1)).flatten().numpy(), sums, rtol=1e-5, atol=1e-6)
    assert weight.grad.flatten().tolist() == [4.375, 2.875, 11.375, 5.125, 5.5, 2.25, 13.625, 3.75] * 2


def test_roi_pool():
    values, places = _torchvision.roi_pool(IMAGES, ROIS, 0.8, 2, 2)
    assert values.flatten().tolist() == [11, 13, 16, 13, 14, 16, 16, 14, 15, 16, 8, 9, 11, 12, 16, 5]
    assert places.flatten().tolist() == [11, 13, 16, 13, 1, 3, 20, 18, 6, 7, 16, 17, 6, 7, 11, 17]


def test_its_library_is_ours():
    ops.load_library("/somewhere/torchvision/_C_stable.so")
    assert ops.torchvision.nms(BOXES, fl.arange(5).float(), 0.5).tolist() == [4, 3]
    with pytest.raises(NotImplementedError, match="torchvision::qnms"):
        ops.torchvision.qnms(BOXES)
    with pytest.raises(OSError, match="do not run on Flambeau"):
        ops.load_library("/somewhere/other/_C.so")


def test_operators_of_ones_own():
    @library.custom_op("tests::scaled", mutates_args=())
    def scaled(x: fl.Tensor, n: int = 2) -> fl.Tensor:
        return x.detach() * n

    assert scaled._schema == "(Tensor x, SymInt n=2) -> Tensor"
    x = fl.ones(3, requires_grad=True)
    assert scaled(x).tolist() == [2, 2, 2] and ops.tests.scaled(x, n=5).tolist() == [5, 5, 5]
    scaled.register_autograd(lambda ctx, grad: (grad * ctx.n, None),
                             setup_context=lambda ctx, inputs, output: setattr(ctx, "n", inputs[1]))
    scaled(x, n=7).sum().backward()
    assert x.grad.tolist() == [7, 7, 7]
    scaled.register_fake(lambda x, n=2: fl.empty_like(x))
    assert scaled(fl.empty(4, device="meta")).shape == (4,)


def test_operators_by_schema():
    mine = library.Library("tests2", "DEF")
    mine.define("twice(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="tests2::twice has no implementation"):
        ops.tests2.twice(fl.ones(1))
    mine.impl("twice", lambda x: x * 2, "CPU")
    assert ops.tests2.twice.default(fl.ones(1)).tolist() == [2]
    assert ops.aten.add(fl.ones(1), 1).tolist() == [2]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ops.tests2.nothing
    with pytest.raises(ValueError, match="namespace"):
        library.define("plain", "() -> ()")


def test_a_library_for_one_kind_of_device():
    library.define("tests3::size", "(Tensor x) -> Tensor")
    library.impl("tests3::size", "CPU", lambda x: x + 1)
    library.Library("tests3", "IMPL", "Meta").impl(ops.tests3.size, lambda x: fl.empty(7, device="meta"))
    assert ops.tests3.size(fl.ones(2)).tolist() == [2, 2]
    assert ops.tests3.size(fl.ones(2, device="meta")).shape == (7,)


def test_checks():
    fl._check(True)
    with pytest.raises(RuntimeError, match="mine"):
        fl._check(False, lambda: "mine")
    with pytest.raises(ValueError, match="cond"):
        fl._check_value(False)
