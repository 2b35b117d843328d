"""Quantization is not supported. QuantStub and DeQuantStub, which models have in their place, do nothing; the
rest raises.
"""
from ...nn import Module

__all__ = ["DeQuantStub", "QConfig", "QuantStub", "convert", "fuse_modules", "fuse_modules_qat", "prepare",
           "prepare_qat"]


class QuantStub(Module):
    """Where a model's input would be quantized."""

    def __init__(self, qconfig=None):
        super().__init__()

    def forward(self, x):
        return x


class DeQuantStub(QuantStub):
    """Where a model's output would be made float again."""


class QuantWrapper(Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


def _refuse(*args, **kwargs):
    raise NotImplementedError("quantization is not supported: Flambeau has no quantized operators")


QConfig = convert = fuse_modules = fuse_modules_qat = prepare = prepare_qat = quantize_dynamic = _refuse
get_default_qconfig = get_default_qat_qconfig = _refuse
default_observer = default_weight_observer = default_per_channel_weight_observer = None
