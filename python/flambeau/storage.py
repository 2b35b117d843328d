"""Storages: the memory behind tensors, as bytes (UntypedStorage) or as elements of one dtype (TypedStorage).
"""
import copy as _copy
import mmap
import os
import tempfile
import weakref

from . import _C
from ._C import UntypedStorage
from ._tensor import TYPE_NAMES

__all__ = ["TypedStorage", "UntypedStorage"]


def _tensor_of(storage, dtype):
    return _C._tensor_on_storage(storage, dtype, 0, (storage.nbytes() // dtype.itemsize,))


class _UntypedMethods:
    """Copied into UntypedStorage below."""

    def __repr__(self):
        values = "\n".join(f" {v}" for v in self.tolist()) if self.device.type != "meta" else "..."
        return f"{values}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self):
        return hash(self._cdata)

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        # Tensors that share a storage share its copy.
        copies = memo.setdefault("flambeau.storages", {})
        if self._cdata not in copies:
            copies[self._cdata] = self.clone()
        return copies[self._cdata]

    def __reduce__(self):
        return _rebuild_untyped, (self._bytes(), self.device)

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def tolist(self):
        return list(self._bytes())

    def clone(self):
        return self._copied_to(self.device)

    def untyped(self):
        return self

    def to(self, *, device, non_blocking=False):
        """The storage where it is on the device, else a copy there."""
        device = _C.empty(0, device=device).device
        return self if device == self.device else self._copied_to(device)

    def cpu(self):
        return self.to(device="cpu")

    def cuda(self, device=None, non_blocking=False):
        """A copy on a CUDA device, the current one unless given; the storage itself where it is there."""
        return self.to(device=_cuda_device(device), non_blocking=non_blocking)

    def get_device(self):
        return _C._tensor_on_storage(self, _C.uint8).get_device()

    def new(self):
        return UntypedStorage(0)

    def type(self):
        return f"torch.{'cuda' if self.is_cuda else 'storage'}.UntypedStorage"

    def byteswap(self, dtype):
        here = self.cpu()
        array = _tensor_of(here, dtype).numpy()
        array[:] = array.byteswap()
        if here is not self:
            self.copy_(here)

    def is_shared(self):
        return self.is_cuda or self._cdata in _shared

    def share_memory_(self):
        if self.is_cuda:
            return self
        raise NotImplementedError("a storage cannot move to shared memory by itself; use "
                                  "Tensor.share_memory_()")

    @staticmethod
    def from_buffer(buffer, *args, **kwargs):
        return UntypedStorage._from_bytes(buffer)

    @staticmethod
    def from_file(filename, shared=False, nbytes=0):
        """A storage on a file; changes reach the file if shared."""
        mode = "r+b" if shared else "rb"
        if shared:
            with open(filename, "ab") as file:
                if file.tell() < nbytes:
                    file.truncate(nbytes)
        with open(filename, mode) as file:
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            return UntypedStorage._on_buffer(mmap.mmap(file.fileno(), nbytes, access=access))


for _name, _value in vars(_UntypedMethods).items():
    if callable(_value) or isinstance(_value, staticmethod):
        setattr(UntypedStorage, _name, _value)
UntypedStorage.is_cuda = property(lambda self: self.device.type == "cuda")
UntypedStorage.is_sparse = False


class TypedStorage:
    """A storage seen as elements of one dtype."""

    dtype = None
    is_sparse = False
    is_cuda = property(lambda self: self._untyped_storage.is_cuda)

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        device = device or type(self)._device
        self.dtype = dtype or type(self).dtype or _C.get_default_dtype()
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
        elif not args:
            self._untyped_storage = UntypedStorage(0, device=device)
        elif isinstance(args[0], int):
            self._untyped_storage = UntypedStorage(args[0] * self.dtype.itemsize, device=device)
        else:
            made = _C.tensor(list(args[0]), dtype=self.dtype, device=device)
            self._untyped_storage = made.untyped_storage()

    _device = None

    def _wrapping(self, untyped):
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype, _internal=True)

    def _tensor(self):
        return _tensor_of(self._untyped_storage, self.dtype)

    def __len__(self):
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    size = __len__

    def __getitem__(self, index):
        value = self._tensor()[index]
        return value.tolist() if isinstance(index, slice) else value.item()

    def __setitem__(self, index, value):
        self._tensor()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def __repr__(self):
        values = "\n".join(f" {v}" for v in self.tolist())
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        return f"{values}\n[{kind} of size {len(self)}]"

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self.dtype is other.dtype and self._cdata == other._cdata

    def __hash__(self):
        return hash(self._cdata)

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        return TypedStorage(wrap_storage=_copy.deepcopy(self._untyped_storage, memo), dtype=self.dtype)

    def __reduce__(self):
        return _rebuild_storage, (self._untyped_storage._bytes(), self.dtype, self.device)

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def untyped(self):
        return self._untyped_storage

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    def nbytes(self):
        return self._untyped_storage.nbytes()

    _nbytes = nbytes

    def element_size(self):
        return self.dtype.itemsize

    def tolist(self):
        return self._tensor().tolist()

    def clone(self):
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def fill_(self, value):
        self._tensor().fill_(value)
        return self

    def copy_(self, source, non_blocking=False):
        self._tensor().copy_(source._tensor(), non_blocking)
        return self

    def resize_(self, size):
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def cpu(self):
        return self.to(device="cpu")

    def cuda(self, device=None, non_blocking=False):
        return self.to(device=_cuda_device(device), non_blocking=non_blocking)

    def get_device(self):
        return self._untyped_storage.get_device()

    def to(self, dtype=None, *, device=None, non_blocking=False):
        """The elements in another dtype, or on another device."""
        if dtype is not None:
            return TypedStorage(wrap_storage=self._tensor().to(dtype).untyped_storage(), dtype=dtype)
        there = self._untyped_storage.to(device=device, non_blocking=non_blocking)
        return self if there is self._untyped_storage else self._wrapping(there)

    def float(self):
        return self.to(_C.float32)

    def double(self):
        return self.to(_C.float64)

    def half(self):
        return self.to(_C.float16)

    def long(self):
        return self.to(_C.int64)

    def int(self):
        return self.to(_C.int32)

    def type(self, dtype=None):
        where = "cuda." if self.is_cuda else ""
        return f"torch.{where}{self.pickle_storage_type()}" if dtype is None else self.to(dtype)

    def pickle_storage_type(self):
        """The name that PyTorch's files give to storages of this dtype."""
        return f"{TYPE_NAMES[str(self.dtype)[6:]]}Storage"

    _pickle_storage_type = pickle_storage_type

    def is_shared(self):
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device=None):
        return self._untyped_storage.is_pinned()

    def pin_memory(self, device=None):
        """A copy in page-locked memory; the storage itself where it is there."""
        return self if self.is_pinned() else self._wrapping(self._untyped_storage.pin_memory())


def _cuda_device(where):
    from .cuda._devices import index_of

    return _C.device("cuda", index_of(where))


def _rebuild_untyped(data, device=None):
    here = UntypedStorage._from_bytes(data)
    return here if device is None else here.to(device=device)


def _rebuild_storage(data, dtype, device=None):
    return TypedStorage(wrap_storage=_rebuild_untyped(data, device), dtype=dtype)


def _typed_class(name, dtype, device=None):
    """FloatStorage and its kind; also what torch.cuda.FloatStorage is."""
    return type(f"{name}Storage", (TypedStorage,),
                {"dtype": dtype, "_device": device, "__module__": __name__})


for _dtype, _type in TYPE_NAMES.items():
    globals()[f"{_type}Storage"] = _typed_class(_type, getattr(_C, _dtype))


class _SharedMemory(mmap.mmap):
    """Memory that other processes can map: they are given its descriptor."""

    descriptor = None


# By storage; an entry lives as long as its storage.
_shared = weakref.WeakValueDictionary()


def on_descriptor(descriptor, size):
    """A storage on shared memory; it closes the descriptor in the end."""
    memory = _SharedMemory(descriptor, size)
    memory.descriptor = descriptor
    weakref.finalize(memory, os.close, descriptor)
    storage = UntypedStorage._on_buffer(memory)
    _shared[storage._cdata] = memory
    return storage


def descriptor_of(storage):
    """The descriptor of a storage in shared memory."""
    return _shared[storage._cdata].descriptor


def share(tensor):
    """Moves a tensor's elements, in place, into memory that other processes see too. Views of it stay where
    they are.
    """
    untyped = tensor.untyped_storage()
    if tensor.is_cuda or untyped.is_shared() or not untyped.nbytes():
        return tensor
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("flambeau")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.truncate(descriptor, untyped.nbytes())
    shared = on_descriptor(descriptor, untyped.nbytes())
    shared.copy_(untyped)
    moved = _C._tensor_on_storage(shared, tensor.dtype, tensor.storage_offset(), tensor.size(),
                                  tensor.stride())
    tensor.data = moved
    return tensor


def is_storage(value):
    """Whether a value is a storage."""
    return isinstance(value, (TypedStorage, UntypedStorage))
