"""How tensors are pickled for other processes: by a descriptor of their memory."""
import mmap
import os
from multiprocessing.reduction import DupFd, ForkingPickler

from .. import _C
from .._C import Tensor, UntypedStorage


def shared_storage(storage):
    """The descriptor of a storage's memory, which moves into shared memory if it isn't there; None if it is empty."""
    if not storage.nbytes():
        return None
    if getattr(storage, "_shared_file", None) is None:
        raise RuntimeError("the storage is not in shared memory")
    return storage._shared_file


def on_file(file, size):
    """A storage on the memory of a descriptor, which it keeps."""
    storage = UntypedStorage._on_buffer(mmap.mmap(file, size))
    storage._shared_file, storage._is_shared = _Descriptor(file), True
    return storage


class _Descriptor:
    """Closes it with the storage."""

    def __init__(self, file):
        self.file = file

    def __del__(self, close=os.close):
        close(self.file)


def reduce_tensor(tensor):
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
                           "support crossing process boundaries. If you just want to transfer the data, call detach() on "
                           "the tensor before serializing (e.g., putting it on the queue).")
    tensor.share_memory_()
    storage = tensor.untyped_storage()
    file = shared_storage(storage)
    view = (storage.nbytes(), tensor.dtype, tensor.storage_offset(), tuple(tensor.size()), tensor.stride())
    attributes = {k: v for k, v in tensor.__dict__.items() if not k.startswith("_")}
    return rebuild_tensor, (type(tensor), None if file is None else DupFd(file.file), view, tensor.requires_grad, attributes)


_known = {}  # storages that came from a file, by its identity: tensors that shared memory share it again


def rebuild_tensor(cls, descriptor, view, requires_grad, attributes):
    size, dtype, offset, sizes, strides = view
    if descriptor is None:
        storage = UntypedStorage(0)
    else:
        file = descriptor.detach()
        key = os.fstat(file).st_dev, os.fstat(file).st_ino
        storage = _known[key]() if key in _known else None
        if storage is None:
            import weakref

            storage = on_file(file, size)
            _known[key] = weakref.ref(storage, lambda _: _known.pop(key, None))
        else:
            os.close(file)
    tensor = _C._tensor_on_storage(storage, dtype, offset, sizes, strides)
    if cls is not Tensor:
        tensor = _C._make_subclass(cls, tensor, requires_grad)
    tensor.__dict__.update(attributes)
    return tensor.requires_grad_() if requires_grad else tensor


def init_reductions():
    """Registers them."""
    from ..nn.parameter import Parameter

    for cls in (Tensor, Parameter):
        ForkingPickler.register(cls, reduce_tensor)
