"""Between tensors and what the reference functions take and give."""
import numpy as np

import flambeau as fl


def array(tensor):
    """The elements, exactly; half types as float32."""
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype is fl.bfloat16 else tensor).numpy()


def numpy_dtype(dtype):
    return np.dtype("float32" if dtype is fl.bfloat16 else str(dtype).split(".")[1])


def wide_array(tensor):
    """As float64, complex128, int64 or bool."""
    a = array(tensor)
    return a.astype({"f": np.float64, "c": np.complex128, "b": bool}.get(a.dtype.kind, np.int64))


def for_reference(value):
    if isinstance(value, fl.Tensor):
        return wide_array(value)
    if isinstance(value, fl.dtype):
        return numpy_dtype(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, fl.Tensor) for v in value):
        return tuple(for_reference(v) for v in value)
    return value
