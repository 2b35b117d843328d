"""Linear maps: products with weights, convolutions, windows as columns."""
import flambeau as fl
from flambeau import (  # noqa: F401
    conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, linear,
)

__all__ = [
    "bilinear", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "fold", "linear", "unfold",
]


def bilinear(input1, input2, weight, bias=None):
    """out[..., o] = input1[..., i] weight[o, i, j] input2[..., j] + bias[o]."""
    if input1.dim() != input2.dim():
        raise RuntimeError("bilinear(): 'input1' and 'input2' must have equally many dimensions, "
                           f"got {input1.dim()} and {input2.dim()}")
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError("bilinear(): 'input1' and 'input2' may differ in the last dimension only, "
                           f"got {input1.shape} and {input2.shape}")
    for k, input in ((1, input1), (2, input2)):
        if input.size(-1) != weight.size(k):
            raise RuntimeError(f"bilinear(): the last dimension of 'input{k}' must be {weight.size(k)} for "
                               f"this 'weight', got {input.size(-1)}")
    if bias is not None and bias.size(0) != weight.size(0):
        raise RuntimeError(f"bilinear(): 'bias' must have {weight.size(0)} elements for this 'weight', "
                           f"got {bias.size(0)}")
    out = fl.einsum("bi,oij,bj->bo", input1.reshape(-1, input1.size(-1)), weight,
                    input2.reshape(-1, input2.size(-1)))
    out = out.reshape(*input1.shape[:-1], weight.size(0))
    return out if bias is None else out + bias


def conv_tbc(input, weight, bias, pad=0):
    """conv1d over (time, batch, channels) with a weight (kernel, in, out)."""
    return fl.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of each image as columns: (N, C, H, W) to (N, C kernel, windows)."""
    return fl.im2col(input, kernel_size, dilation, padding, stride)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns added up at the places of an image that unfold takes them from."""
    return fl.col2im(input, output_size, kernel_size, dilation, padding, stride)
