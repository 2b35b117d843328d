"""CUDA graphs: work that is recorded once and launched as one.

Recorded work runs on the same addresses at every launch: inputs are changed by copying into them, outputs are
overwritten. Nothing in it may make the host wait for the device.
"""
import gc
import warnings

from .. import _C
from ._devices import synchronize
from .memory import empty_cache
from .streams import Stream, stream as _stream_context

_cuda = _C._cuda


def is_current_stream_capturing():
    """Whether work put into the current stream is recorded instead of run."""
    return _cuda.device_count() > 0 and _cuda.is_recording()


def graph_pool_handle():
    """A name for memory that several graphs share, given to them as pool=. They must not run at the same
    time, and a later one may overwrite what an earlier one left.
    """
    return (0, _cuda.new_pool())


class CUDAGraph:
    """Work of a stream. Recorded by torch.cuda.graph(), launched by replay()."""

    def __init__(self, keep_graph=False):
        self._graph, self._pool = None, None

    def capture_begin(self, pool=None, capture_error_mode="global"):
        """Records what this thread puts into the current stream from now on, which can't be the default one.
        Memory comes from the graph's pool, or from that of another graph: pool=graph.pool().
        """
        if self._graph is not None and self._graph.is_recorded:
            raise RuntimeError("the CUDA graph was recorded already: reset() it first, or make another")
        made = _cuda.Graph(_cuda.current_device())
        made.begin(pool[1] if pool is not None else 0, capture_error_mode)
        self._graph, self._pool = made, made.pool

    def capture_end(self):
        self._made().end()
        if self._graph.node_count == 0:
            warnings.warn("The CUDA Graph is empty: nothing was put into the stream that was recorded, or what was "
                          "put there runs on another device", stacklevel=2)

    def _made(self):
        if self._graph is None:
            raise RuntimeError("the CUDA graph was not recorded: capture_begin() comes first")
        return self._graph

    def replay(self):
        """Launches the work in the current stream. Random numbers are new ones."""
        self._made().launch()

    def instantiate(self):
        """Has no effect: a graph can be launched once it was recorded."""
        self._made()

    def reset(self):
        """Drops what was recorded, and the graph's hold on its memory."""
        if self._graph is not None:
            self._graph.reset()

    def pool(self):
        """For the pool= of other graphs."""
        if self._pool is None:
            raise RuntimeError("the CUDA graph was not recorded: it has no pool yet")
        return (0, self._pool)

    def register_generator_state(self, generator):
        """Has no effect: every generator of the device that recorded work draws from is known."""

    def enable_debug_mode(self):
        """Has no effect: debug_dump() works without."""

    def debug_dump(self, debug_path):
        """Writes a picture of the graph for graphviz."""
        self._made().print(str(debug_path))


_streams = {}  # that torch.cuda.graph() records on, by device


class graph:
    """with torch.cuda.graph(g): work is recorded in the CUDAGraph g, on a stream of its own or the one given."""

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        if stream is None:
            index = _cuda.current_device()
            stream = _streams[index] if index in _streams else _streams.setdefault(index, Stream())
        self.cuda_graph, self.capture_stream, self.capture_error_mode = cuda_graph, stream, capture_error_mode
        self.pool = () if pool is None else (pool,)

    def __enter__(self):
        synchronize()
        gc.collect()
        empty_cache()
        self._context = _stream_context(self.capture_stream)
        self._context.__enter__()
        try:
            self.cuda_graph.capture_begin(*self.pool, capture_error_mode=self.capture_error_mode)
        except BaseException as error:
            self._context.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(self, kind, error, traceback):
        try:
            if error is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph._graph.abandon()
        finally:
            self._context.__exit__(kind, error, traceback)
        return False


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """Functions or modules whose forward and backward are launched as graphs; a tuple gives a tuple.

    sample_args: for each the arguments of a call, all tensors, of the sizes and with the requires_grad of
    later calls; a tuple of such tuples for a tuple of callables, in the order in which they will run. A module
    is changed in place: while it trains as it did now, calls launch the graphs.
    """
    from . import _graphed

    several = isinstance(callables, (tuple, list))
    if not several:
        callables, sample_args = (callables,), (sample_args,)
    if len(callables) != len(sample_args):
        raise ValueError(f"make_graphed_callables(): expected arguments for each of {len(callables)} callables, "
                         f"got {len(sample_args)}")
    made = _graphed.make(callables, sample_args, num_warmup_iters, allow_unused_input,
                         graph_pool_handle() if pool is None else pool)
    return made if several else made[0]
