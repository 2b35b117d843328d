"""Batch normalisation folded into the layer before it, for inference."""
import copy

import flambeau as fl
from flambeau.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(weight, bias, mean, var, eps, bn_weight, bn_bias, shape):
    """Weight and bias of weight x + bias, then (y - mean) / sqrt(var + eps) * bn_weight + bn_bias."""
    bias = fl.zeros_like(mean) if bias is None else bias
    bn_weight = fl.ones_like(mean) if bn_weight is None else bn_weight
    bn_bias = fl.zeros_like(mean) if bn_bias is None else bn_bias
    scale = bn_weight * fl.rsqrt(var + eps)
    new_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    new_bias = ((bias - mean) * scale + bn_bias).to(weight.dtype)
    requires_grad = weight.requires_grad
    return Parameter(new_weight, requires_grad), Parameter(new_bias, requires_grad)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of a convolution that normalises its output too."""
    shape = [1, -1] if transpose else [-1, 1]
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape + [1] * (conv_w.dim() - 2))


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of a linear map that normalises its output too."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _check_inference(layer, bn):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Only support fusing BN with running statistics")


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution that does what conv and bn do, in inference."""
    _check_inference(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var,
                                                    bn.eps, bn.weight, bn.bias, transpose)
    return fused


def fuse_linear_bn_eval(linear, bn):
    """A Linear that does what linear and bn do, in inference."""
    _check_inference(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(f"'bn' must have 1 or {linear.out_features} features (linear.out_features), "
                             f"it has {bn.num_features}")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean,
                                                      bn.running_var, bn.eps, bn.weight, bn.bias)
    return fused
