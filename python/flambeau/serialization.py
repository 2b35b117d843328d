"""save() and load(): objects with tensors in them, in PyTorch's file format.

A file is a ZIP archive without compression: data.pkl, a pickle in which storages are references, and for
every storage a record data/0, data/1, ... whose bytes begin at a multiple of 64. load() reads by default with
weights_only=True: an own unpickler that makes tensors and plain containers, and calls nothing else.
"""
import contextlib
import io
import os
import pickle
import threading
from enum import Enum

from . import _C
from ._C import UntypedStorage
from ._serialization import archive, globals as _globals, legacy, safe_unpickler
from .storage import TypedStorage

__all__ = ["SourceChangeWarning", "LoadEndianness", "add_safe_globals", "clear_safe_globals",
           "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options", "get_safe_globals",
           "get_unsafe_globals_in_checkpoint", "load", "register_package", "safe_globals", "save",
           "set_crc32_options", "set_default_load_endianness", "set_default_mmap_options"]

DEFAULT_PROTOCOL = 2
_NO_DEVICE = ("The file's storage was on a {} device, and torch.{}.is_available() is False here. To have "
              "it on the CPU, call torch.load with map_location=torch.device('cpu').")
_TOO_FEW = ("The file's storage was on {}, and torch.cuda.device_count() is {} here. To have it on a device "
            "that exists, call torch.load with map_location, such as 'cpu' or {{'{}': 'cuda:0'}}.")


class SourceChangeWarning(Warning):
    """Kept for programs that name it."""


class LoadEndianness(Enum):
    NATIVE, LITTLE, BIG = 1, 2, 3


# Safe globals.
add_safe_globals = safe_unpickler.add_safe_globals
clear_safe_globals = safe_unpickler.clear_safe_globals
get_safe_globals = safe_unpickler.get_safe_globals


class safe_globals:
    """Inside, load(weights_only=True) may also use these classes and functions."""

    def __init__(self, safe_globals):
        self._more = safe_globals

    def __enter__(self):
        self._before = get_safe_globals()
        add_safe_globals(self._more)

    def __exit__(self, *error):
        clear_safe_globals()
        add_safe_globals(self._before)


def get_unsafe_globals_in_checkpoint(f):
    """Names of classes and functions in a file that load(weights_only=True) would refuse."""
    with _opened(f, "rb") as file, archive.Reader(file) as records:
        return safe_unpickler.unknown_globals(records.read("data.pkl"))


# Saving.
def save(obj, f, pickle_module=pickle, pickle_protocol=DEFAULT_PROTOCOL, _use_new_zipfile_serialization=True,
         _disable_byteorder_record=False):
    """Writes an object to a file: f is a path or a file object with write(). PyTorch can read the file.

    Tensors that share memory share it again when they are loaded.
    """
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("save(): the format from before PyTorch 1.6 can be read, but not written")
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("'f' must be a path or an object with a method 'write', not "
                             f"{type(f).__name__}")
    text, storages = _pickled(obj, pickle_module, pickle_protocol)
    name = (os.path.splitext(os.path.basename(os.fspath(f)))[0] if isinstance(f, (str, os.PathLike))
            else "archive")
    with _opened(f, "wb") as file, archive.Writer(file, name) as records:
        records.write("data.pkl", text)
        records.write(".format_version", b"1")
        records.write(".storage_alignment", str(archive.ALIGNMENT).encode())
        if not _disable_byteorder_record:
            records.write("byteorder", b"little")
        for key, storage in storages.items():
            records.write(f"data/{key}", memoryview(storage.cpu()))
        records.write("version", b"3\n")
        records.write(".data/serialization_id", records.identification().encode())


def _pickled(obj, pickle_module, protocol):
    """The pickle, and its storages by key."""
    keys, storages = {}, {}

    def persistent_id(x):
        if isinstance(x, TypedStorage):
            untyped, kind, count = x._untyped_storage, _globals.storage_class(x), len(x)
        elif isinstance(x, UntypedStorage):
            untyped, kind, count = x, UntypedStorage, x.nbytes()
        else:
            return None
        key = keys.setdefault(untyped._cdata, str(len(keys)))
        storages[key] = untyped
        return "storage", kind, key, _location(untyped), count

    text = io.BytesIO()
    base = _globals.Pickler if pickle_module is pickle else pickle_module.Pickler
    pickler = type("StoragePickler", (base,), {"persistent_id": staticmethod(persistent_id)})(text, protocol)
    pickler.dump(obj)
    return text.getvalue(), storages


def _location(storage):
    """Where a storage is, as a file says it; packages that were registered are asked first."""
    for tagger, _ in _packages:
        if (tag := tagger(storage)) is not None:
            return tag
    return str(storage.device) if storage.is_cuda else storage.device.type


# Loading.
def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """The object of a file that save() or PyTorch's save() has written: f is a path or a file object.

    map_location says on which device storages go: a device, its name, a dict of names, or a function of
    storage and name. weights_only=False unpickles any object, which can run any code: for files that you
    trust. mmap: memory is mapped from the file (a path then), and read when it is used.
    """
    if weights_only is None:
        weights_only = pickle_module is None and not _environment("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    if _environment("TORCH_FORCE_WEIGHTS_ONLY_LOAD"):
        weights_only = True
    if weights_only and pickle_module is not None:
        raise RuntimeError("weights_only=True has its own unpickler: it excludes pickle_module")
    mmap = _mmap_default if mmap is None else mmap
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError(f"f must be a path in order to use the mmap argument, got {type(f).__name__}")
    place = _placement(map_location)
    with _opened(f, "rb") as file:
        unpickle = _unpickler(weights_only, pickle_module, pickle_load_args)
        if not archive.is_archive(file):
            if mmap:
                raise RuntimeError("mmap=True needs the zip format, which PyTorch 1.6 introduced; this file "
                                   "has an older one")
            return legacy.load(file, unpickle, place)
        with archive.Reader(file) as records:
            if records.has("constants.pkl"):
                raise RuntimeError("this file is a TorchScript archive: torch.load does not read it, and "
                                   "Flambeau does not run TorchScript")
            return _load_archive(records, unpickle, place, mmap)


def _environment(name):
    return os.environ.get(name, "0").lower() in ("1", "y", "yes", "true")


def _unpickler(weights_only, pickle_module, options):
    """A function (file, persistent_load) that reads one pickle."""
    if weights_only:
        return safe_unpickler.load
    base = getattr(pickle_module or pickle, "Unpickler")
    options.setdefault("encoding", "utf-8")

    class Unpickler(base):
        def find_class(self, module, name):
            return _globals.find(super().find_class, module, name)

    def unpickle(file, persistent_load):
        unpickler = Unpickler(file, **options)
        if persistent_load is not None:
            unpickler.persistent_load = persistent_load
        return unpickler.load()

    return unpickle


def _load_archive(records, unpickle, place, mmap):
    swap = records.has("byteorder") and records.read("byteorder") == b"big"
    storages = {}

    def persistent_load(saved):
        kind, storage_type, key, location, count = _checked(saved)
        dtype = _C.uint8 if storage_type is UntypedStorage else storage_type.dtype
        if key not in storages:
            size, name = count * dtype.itemsize, f"data/{key}"
            storage = place(lambda: records.storage(name, size, mmap), location)
            if swap and dtype.itemsize > 1:
                storage.byteswap(dtype)
            storages[key] = storage
        return TypedStorage(wrap_storage=storages[key], dtype=dtype, _internal=True)

    return unpickle(io.BytesIO(records.read("data.pkl")), persistent_load)


def _checked(saved):
    if (not isinstance(saved, tuple) or len(saved) < 5 or saved[0] != "storage"
            or not isinstance(saved[4], int)):
        raise pickle.UnpicklingError(f"expected a reference to a storage, got {saved!r:.100}")
    if (saved[1] is not UntypedStorage
            and not (isinstance(saved[1], type) and issubclass(saved[1], TypedStorage))):
        raise pickle.UnpicklingError(f"expected a storage's class, got {saved[1]!r:.100}")
    return saved[:5]


def _placement(map_location):
    """A function (read, location) -> storage; read() reads the storage to the CPU."""
    def to_device(read, where):
        where = _C.device(where) if isinstance(where, (str, int)) else where
        if where.type == "meta":
            return UntypedStorage(read().nbytes(), device="meta")
        if where.type == "cpu":
            return read()
        from . import cuda

        if where.type != "cuda" or not cuda.is_available():
            raise RuntimeError(_NO_DEVICE.format(where.type.upper(), where.type))
        if where.index is not None and where.index >= cuda.device_count():
            raise RuntimeError(_TOO_FEW.format(where, cuda.device_count(), where))
        return read().cuda(where)

    def place(read, location):
        for matches, restore in _packages:
            if location != "cpu" and restore is not None:
                made = restore(read(), location) if map_location is None else None
                if made is not None:
                    return made
        if callable(map_location) and not isinstance(map_location, (str, _C.device)):
            storage = read()
            mapped = map_location(storage, location)
            return storage if mapped is None else getattr(mapped, "_untyped_storage", mapped)
        if isinstance(map_location, dict):
            return to_device(read, map_location.get(location, location))
        return to_device(read, location if map_location is None else map_location)

    return place


_packages = []


def register_package(priority, tagger, deserializer):
    """Asks deserializer(storage, location) for storages of devices that Flambeau does not know."""
    _packages.append((tagger, deserializer))


@contextlib.contextmanager
def _opened(f, mode):
    if isinstance(f, (str, os.PathLike)):
        with open(f, mode) as file:
            yield file
        return
    missing = [name for name in (("read", "seek", "tell") if "r" in mode else ("write",))
               if not hasattr(f, name)]
    if missing:
        raise AttributeError(f"torch.load reads a file that is seekable, but '{type(f).__name__}' has no "
                             f"method '{missing[0]}'. Read it into an io.BytesIO first.")
    yield f


# Options that PyTorch has.
_mmap_default, _crc32 = False, True
_endianness = None
config = threading.local()


def set_default_mmap_options(flags):
    """Has no effect: files are always mapped copy-on-write."""


def get_default_mmap_options():
    import mmap

    return getattr(mmap, "MAP_PRIVATE", 2)


def get_default_load_endianness():
    return _endianness


def set_default_load_endianness(endianness):
    """Of files without a record of their byte order."""
    global _endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    if endianness is LoadEndianness.BIG:
        raise NotImplementedError("files without a record of their byte order are read as little-endian")
    _endianness = endianness


def get_crc32_options():
    return _crc32


def set_crc32_options(compute_crc32):
    """Kept for get_crc32_options(), and no more: checksums are always written."""
    global _crc32
    _crc32 = bool(compute_crc32)


def _get_layout(name):
    """The layout of this name, such as "torch.sparse_coo"."""
    found = getattr(_C, name.removeprefix("torch."), None)
    if not isinstance(found, _C.layout):
        raise ValueError(f"there is no layout {name}")
    return found
