"""ZIP archives in PyTorch's layout: one folder, nothing compressed, the bytes of records aligned."""
import mmap
import struct
import zipfile
import zlib

from .._C import UntypedStorage

ALIGNMENT = 64
_LOCAL_HEADER = 30  # bytes before a record's name
_ZIP64 = 20  # bytes that the sizes of a large record take in its header
_LARGE = (1 << 31) - 1
_PADDING = b"FB"  # the field of the header that fills it up to the alignment


def is_archive(file):
    """Whether a file begins as one; its position stays."""
    at = file.tell()
    head = file.read(4)
    file.seek(at)
    return head == b"PK\x03\x04"


class Writer:
    """A context manager. write() adds records; the archive is whole at the end."""

    def __init__(self, file, folder):
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self._folder, self._checksum = folder or "archive", 0

    def __enter__(self):
        return self

    def __exit__(self, kind, *error):
        if kind is None:
            self._zip.close()

    def write(self, name, data):
        info = zipfile.ZipInfo(f"{self._folder}/{name}", (1980, 1, 1, 0, 0, 0))
        data = memoryview(data).cast("B") if len(data) else b""
        large = len(data) > _LARGE
        start = self._zip.fp.tell() + _LOCAL_HEADER + len(info.filename.encode()) + (_ZIP64 if large else 0)
        padding = -(start + 4) % ALIGNMENT
        info.extra = struct.pack("<2sH", _PADDING, padding) + b"Z" * padding
        info.file_size = len(data)
        with self._zip.open(info, "w", force_zip64=large) as record:
            record.write(data)
        record = struct.pack("<IQ", info.CRC, len(data))
        self._checksum = zlib.crc32(name.encode(), zlib.crc32(record, self._checksum))

    def identification(self):
        """A number of 40 digits that depends on what was written."""
        return f"{self._checksum:040d}"


class Reader:
    """A context manager. Records go by their names within the archive's folder."""

    def __init__(self, file):
        self._file = file
        try:
            self._zip = zipfile.ZipFile(file)
            names = self._zip.namelist()
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, struct.error) as error:
            raise RuntimeError("failed reading the file as a ZIP archive, it is damaged or not complete: "
                               f"{error}") from None
        if not names:
            raise RuntimeError("the file is an archive without records")
        self._folder = names[0].split("/")[0] + "/"
        self._names = set(names)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._zip.close()

    def has(self, name):
        return self._folder + name in self._names

    def _info(self, name):
        if not self.has(name):
            raise RuntimeError(f"the archive has no record {name}: the file is damaged, or not one of "
                               "torch.save")
        return self._zip.getinfo(self._folder + name)

    def read(self, name):
        """A record's bytes."""
        try:
            return self._zip.read(self._info(name))
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, struct.error) as error:
            raise RuntimeError(f"failed reading record {name}, the file is damaged: {error}") from None

    def storage(self, name, size, mapped=False):
        """A record as a storage of `size` bytes; mapped: memory of the file, copied where it is changed."""
        info = self._info(name)
        if info.file_size < size:
            raise RuntimeError(f"record {name} has {info.file_size} bytes, the storage should have {size}: "
                               "the file is damaged")
        if size == 0:
            return UntypedStorage(0)
        if info.compress_type != zipfile.ZIP_STORED:
            return UntypedStorage._from_bytes(self.read(name)[:size])
        try:
            with self._zip.open(info) as record:  # checks the header
                if mapped:
                    return self._mapped(info, size)
                storage = UntypedStorage(size)
                target, got = memoryview(storage), 0
                while got < size and (n := record.readinto(target[got:])):
                    got += n
                record.read()  # to its end: the checksum is compared there
        except (zipfile.BadZipFile, EOFError, struct.error) as error:
            raise RuntimeError(f"failed reading record {name}, the file is damaged: {error}") from None
        if got < size:
            raise RuntimeError(f"record {name} ends after {got} of {size} bytes: the file is damaged")
        return storage

    def _mapped(self, info, size):
        with open(self._file.name, "rb") as file:
            file.seek(info.header_offset + 26)
            name, extra = struct.unpack("<HH", file.read(4))
            start = info.header_offset + _LOCAL_HEADER + name + extra
            page = start - start % mmap.ALLOCATIONGRANULARITY
            memory = mmap.mmap(file.fileno(), start - page + size, access=mmap.ACCESS_COPY, offset=page)
        return UntypedStorage._on_buffer(memoryview(memory)[start - page:start - page + size])
