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
