"""ONNX files are not written: programs that only name this module run."""
from . import symbolic_helper

__all__ = ["export", "is_in_onnx_export", "register_custom_op_symbolic", "unregister_custom_op_symbolic"]


def is_in_onnx_export():
    return False


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Has no effect: no ONNX file is written."""


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Has no effect: no ONNX file is written."""


def export(*args, **kwargs):
    raise NotImplementedError("torch.onnx.export is not supported: Flambeau does not write ONNX files")


dynamo_export = export
