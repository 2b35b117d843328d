"""Decorators of functions that would write nodes of ONNX graphs: they have no effect, no file is written."""


def parse_args(*arg_descriptors):
    return lambda fn: fn


def quantized_args(*arg_q_descriptors, **options):
    return lambda fn: fn
