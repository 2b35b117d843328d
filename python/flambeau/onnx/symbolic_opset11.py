"""Functions of this version of ONNX: there are none."""
