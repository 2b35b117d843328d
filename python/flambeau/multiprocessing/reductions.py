"""How tensors are pickled for other processes: by a descriptor of their memory."""
from multiprocessing.reduction import DupFd, ForkingPickler

from .. import _C
from .._C import Tensor, UntypedStorage
from ..storage import descriptor_of, on_descriptor


def reduce_tensor(tensor):
    """Moves the tensor into shared memory, if it is not there."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("A tensor with requires_grad that is not a leaf cannot go to another process: "
                           "the graph behind it stays here. To send the values alone, call detach() first.")
    tensor.share_memory_()
    storage = tensor.untyped_storage()
    view = (storage.nbytes(), tensor.dtype, tensor.storage_offset(), tuple(tensor.size()), tensor.stride())
    descriptor = DupFd(descriptor_of(storage)) if storage.nbytes() else None
    return rebuild_tensor, (type(tensor), descriptor, view, tensor.requires_grad)


def rebuild_tensor(cls, descriptor, view, requires_grad):
    size, dtype, offset, sizes, strides = view
    storage = UntypedStorage(0) if descriptor is None else on_descriptor(descriptor.detach(), size)
    tensor = _C._tensor_on_storage(storage, dtype, offset, sizes, strides)
    if cls is not Tensor:
        tensor = _C._make_subclass(cls, tensor, requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def init_reductions():
    """Registers them."""
    from ..nn.parameter import Parameter

    for cls in (Tensor, Parameter):
        ForkingPickler.register(cls, reduce_tensor)
