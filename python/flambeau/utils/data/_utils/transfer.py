"""Objects between processes: small ones through a pipe, the elements of tensors and arrays through shared
memory.

A message is pickled; what is large in it goes to a file in memory that is made for this message, and that the
receiver maps and unlinks. The receiver's tensors lie in that mapping: nothing is copied again.
"""
import io
import itertools
import mmap
import os
import pickle
import tempfile

from flambeau import Tensor

_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm",
                                                                os.W_OK) else tempfile.gettempdir()
_ALIGNMENT = 64
_numbers = itertools.count()


def _path_prefix(process):
    return f"flambeau-{os.getuid() if hasattr(os, 'getuid') else ''}-{process}-"


class _Pickler(pickle.Pickler):
    """Plain tensors with memory of their own are a buffer and how to see it."""

    def reducer_override(self, x):
        if type(x) is not Tensor or x.device.type != "cpu":
            return NotImplemented
        if x.requires_grad and not x.is_leaf:
            raise RuntimeError("a tensor that requires grad and is no leaf can't go to another process: its "
                               "graph stays here. Send x.detach()")
        import flambeau
        source = x.detach()
        if not source.is_contiguous():
            source = source.contiguous()
        raw = source.reshape(-1).view(flambeau.uint8) if source.numel() else None
        buffer = pickle.PickleBuffer(raw.numpy()) if raw is not None else None
        return _tensor, (buffer, x.dtype, tuple(x.shape), x.requires_grad)


def _tensor(buffer, dtype, shape, requires_grad):
    import flambeau
    import numpy
    if buffer is None:
        t = flambeau.empty(shape, dtype=dtype)
    else:
        array = numpy.frombuffer(buffer, numpy.uint8)
        t = flambeau.from_numpy(array if array.flags.writeable else array.copy()).view(dtype).reshape(shape)
    return t.requires_grad_() if requires_grad else t


def pack(x, inline=8192):
    """The bytes of a message for x. What is longer than `inline` goes to a file in memory."""
    buffers, text = [], io.BytesIO()
    _Pickler(text, protocol=5, buffer_callback=lambda b: buffers.append(b)).dump(x)
    parts = [b.raw() for b in buffers]
    if text.tell() > inline:
        parts, body = [text.getbuffer(), *parts], None
    else:
        body = text.getvalue()
    if body is not None and sum(p.nbytes for p in parts) + len(body) <= inline:
        return pickle.dumps((None, body, [bytes(p) for p in parts]))
    offsets, end = [], 0
    for p in parts:
        offsets.append((end, p.nbytes))
        end += -(-p.nbytes // _ALIGNMENT) * _ALIGNMENT
    name = _path_prefix(os.getpid()) + str(next(_numbers))
    file = os.open(os.path.join(_FOLDER, name), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        os.ftruncate(file, max(end, 1))
        for p, (offset, _) in zip(parts, offsets):
            _write(file, p.cast("B") if p.nbytes else p, offset)
    finally:
        os.close(file)
    return pickle.dumps((name, body, offsets))


def _write(file, data, offset):
    while data.nbytes:
        written = os.pwrite(file, data, offset)
        data, offset = data[written:], offset + written


def unpack(message):
    """The object of a message."""
    name, body, parts = pickle.loads(message)
    if name is None:
        return pickle.loads(body, buffers=[bytearray(p) for p in parts])
    path = os.path.join(_FOLDER, name)
    file = os.open(path, os.O_RDWR)
    try:
        os.unlink(path)
        memory = memoryview(mmap.mmap(file, 0))
    finally:
        os.close(file)
    buffers = [memory[offset:offset + size] for offset, size in parts]
    if body is None:
        body, buffers = buffers[0], buffers[1:]
    return pickle.loads(body, buffers=buffers)


def discard(message):
    """Frees what a message holds that nobody will read."""
    name = pickle.loads(message)[0]
    if name is not None:
        try:
            os.unlink(os.path.join(_FOLDER, name))
        except FileNotFoundError:
            pass


def discard_all_of(process):
    """Frees what a process that is no more has left."""
    prefix = _path_prefix(process)
    for name in os.listdir(_FOLDER):
        if name.startswith(prefix):
            try:
                os.unlink(os.path.join(_FOLDER, name))
            except FileNotFoundError:
                pass
