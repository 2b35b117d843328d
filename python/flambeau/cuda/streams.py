"""Streams and events: the order of work on a device."""
from .. import _C
from ._devices import device, index_of

_cuda = _C._cuda


class Stream:
    """Work of one stream runs in order; that of two may run side by side. A priority below 0 goes first."""

    def __init__(self, device=None, priority=0, *, stream_id=None, device_index=None, device_type=None, _handle=None):
        index = device_index if device_index is not None else index_of(device)
        self.device, self.priority = _C.device("cuda", index), min(max(priority, -1), 0)
        if _handle is None:
            _handle = stream_id if stream_id is not None else _cuda.pooled_stream(index, self.priority)
        self.cuda_stream = self.stream_id = _handle

    @property
    def _where(self):
        return self.device.index, self.cuda_stream

    device_index = property(lambda self: self.device.index)

    def wait_event(self, event):
        """What is put into the stream from now on waits for the event."""
        event.wait(self)

    def wait_stream(self, stream):
        """What is put into this stream from now on waits for what the other has now."""
        self.wait_event(stream.record_event())

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def query(self):
        """Whether all work is done."""
        return _cuda.stream_is_idle(*self._where)

    def synchronize(self):
        _cuda.synchronize_stream(*self._where)

    @classmethod
    def priority_range(cls):
        """The lowest priority, 0, and the highest."""
        return _cuda.priority_range(index_of(None))

    def __enter__(self):
        context = StreamContext(self)
        context.__enter__()
        self._contexts = [*getattr(self, "_contexts", ()), context]
        return self

    def __exit__(self, *error):
        return self._contexts.pop().__exit__(*error)

    def __eq__(self, other):
        return isinstance(other, Stream) and self._where == other._where

    def __hash__(self):
        return hash(self._where)

    @property
    def _as_parameter_(self):
        import ctypes
        return ctypes.c_void_p(self.cuda_stream)

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by its address."""

    def __init__(self, stream_ptr, device=None, **kwargs):
        super().__init__(device, stream_id=stream_ptr)


class Event:
    """A point in a stream. It belongs to the device of the stream that records it first."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        if interprocess:
            raise NotImplementedError("Event(interprocess=True): events are not shared with other "
                                      "processes")
        self._timing, self._blocking, self._event = enable_timing, blocking, None

    def _made(self, index):
        if self._event is None:
            self._event = _cuda.Event(index, self._timing, self._blocking)
        return self._event

    def record(self, stream=None):
        stream = stream or current_stream()
        self._made(stream.device.index).record(*stream._where)

    def wait(self, stream=None):
        """What is put into the stream from now on waits for this; one that was never recorded is reached."""
        if self._event is not None:
            self._event.make_wait(*(stream or current_stream())._where)

    def query(self):
        return self._event is None or self._event.query()

    def synchronize(self):
        if self._event is not None:
            self._event.synchronize()

    def elapsed_time(self, end_event):
        """Milliseconds from this to a later event."""
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._event is None or end_event._event is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return self._event.elapsed_time(end_event._event)

    cuda_event = property(lambda self: self._event.handle if self._event else 0)
    device = property(lambda self: _C.device("cuda", self._event.device) if self._event else None)

    def __repr__(self):
        return f"<torch.cuda.Event {self.cuda_event:#x}>" if self._event else "<torch.cuda.Event uninitialized>"


def current_stream(device=None):
    index = index_of(device)
    return Stream(device_index=index, _handle=_cuda.current_stream(index))


def default_stream(device=None):
    return Stream(device_index=index_of(device), _handle=0)


def get_stream_from_external(data_ptr, device=None):
    """A stream that another library made, by its address."""
    return ExternalStream(data_ptr, device)


def set_stream(stream):
    """Makes the stream the current one of its device in this thread."""
    if stream is not None:
        _cuda.set_stream(*stream._where)


class StreamContext:
    """with torch.cuda.stream(s): work goes into s, on its device. None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self._device = device(self.stream.device)
            self._device.__enter__()
            self._before = current_stream(self.stream.device)
            set_stream(self.stream)

    def __exit__(self, *error):
        if self.stream is not None:
            set_stream(self._before)
            self._device.__exit__(*error)
        return False


def stream(stream):
    return StreamContext(stream)
