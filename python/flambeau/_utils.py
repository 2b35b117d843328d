"""Functions that pickled tensors name."""
from . import _C
from ._C import Tensor


def _rebuild_tensor(storage, storage_offset, size, stride):
    return _C._tensor_on_storage(storage._untyped_storage, storage.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    tensor.requires_grad = requires_grad
    return tensor


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype,
                       metadata=None):
    tensor = _C._tensor_on_storage(storage._untyped_storage, dtype, storage_offset, size, stride)
    tensor.requires_grad = requires_grad
    return tensor


def _rebuild_parameter(data, requires_grad, backward_hooks):
    from .nn import Parameter

    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    parameter.__dict__.update(state)
    return parameter


def _rebuild_from_type(cls, state, attributes):
    """A tensor of another class, with its attributes."""
    tensor = _rebuild_tensor_v2(*state)
    if cls is not Tensor:
        tensor = _C._make_subclass(cls, tensor, tensor.requires_grad)
    tensor.__dict__.update(attributes)
    return tensor


def _rebuild_from_type_v2(function, new_type, args, state):
    tensor = function(*args)
    if type(tensor) is not new_type:
        tensor = tensor.as_subclass(new_type)
    if isinstance(state, dict):
        tensor.__dict__.update(state)
    return tensor


def _rebuild_sparse_tensor(layout, data):
    if layout is not _C.sparse_coo:
        from ._sparse_compressed import sparse_compressed_tensor
        return sparse_compressed_tensor(*data, layout=layout)
    indices, values, size, *coalesced = data
    from .sparse import sparse_coo_tensor
    return sparse_coo_tensor(indices, values, size, is_coalesced=bool(coalesced and coalesced[0]))


def __getattr__(name):
    if name in ("ExceptionWrapper", "KeyErrorMessage"):
        from .utils.data._utils import failure
        return getattr(failure, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
