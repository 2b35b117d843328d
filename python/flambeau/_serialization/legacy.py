"""Files of PyTorch before 1.6: a row of pickles, then the storages' bytes."""
import pickle
import struct
import tarfile

from .. import _C
from .._C import UntypedStorage
from ..storage import TypedStorage

_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001


def load(file, unpickle, place):
    """unpickle(file, persistent_load) reads one pickle; place(read, location) puts a storage on its device.
    """
    start = file.tell()
    if not file.read(1):
        raise EOFError("Ran out of input: the file is empty")
    file.seek(start)
    if _is_tar(file, start):
        raise RuntimeError("the file is a tar archive, as PyTorch wrote them before 0.1.10: load it there "
                           "and save it again")
    try:
        magic = unpickle(file, None)
    except pickle.UnpicklingError:
        raise
    except Exception as error:
        raise pickle.UnpicklingError("the file is not one of torch.save, or it is damaged: "
                                     f"{error}") from None
    if magic != _MAGIC:
        raise pickle.UnpicklingError("the file begins with a pickle, but not with torch.save's: it was "
                                     "written by pickle.dump, or it is damaged")
    version = unpickle(file, None)
    if version != _VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    unpickle(file, None)  # sizes of the types of C
    storages, types = {}, {}

    def persistent_load(saved):
        if saved[0] == "module":  # with its source, which nobody reads
            return saved[1]
        _, storage_type, key, location, count, view = saved
        dtype = _C.uint8 if storage_type is UntypedStorage else storage_type.dtype
        if key not in storages:
            storages[key], types[key] = place(lambda: UntypedStorage(count * dtype.itemsize), location), dtype
        if view is None:
            return TypedStorage(wrap_storage=storages[key], dtype=dtype, _internal=True)
        raise pickle.UnpicklingError("storages that are views of others are not supported")

    result = unpickle(file, persistent_load)
    for key in unpickle(file, None):
        _read_into(file, storages[key], types[key])
    return result


def _is_tar(file, start):
    try:
        with tarfile.open(fileobj=file, mode="r:"):
            return True
    except tarfile.TarError:
        return False
    finally:
        file.seek(start)


def _read_into(file, storage, dtype):
    head = file.read(8)
    if len(head) < 8:
        raise RuntimeError("the file ends before its storages: it is not complete")
    size = struct.unpack("<q", head)[0] * dtype.itemsize
    data = file.read(size)
    if len(data) != size or size != storage.nbytes():
        raise RuntimeError(f"the file ends within a storage of {storage.nbytes()} bytes: it is not complete")
    if size and storage.device.type != "meta":
        storage.copy_(UntypedStorage._from_bytes(data))
