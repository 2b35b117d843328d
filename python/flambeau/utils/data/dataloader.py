"""DataLoader: batches of a data set, in order, made in this process or in workers."""
import itertools
import multiprocessing
import multiprocessing.connection
import time
import warnings
import weakref

from ._utils import transfer, worker
from ._utils.collate import collate, default_collate, default_convert
from ._utils.failure import ExceptionWrapper
from ._utils.fetch import fetcher
from ._utils.pin_memory import pinner
from ._utils.worker import get_worker_info
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_JOIN_SECONDS = 5
_PIPE_BYTES = 100_000  # that a pipe holds while nobody reads


class _Endless(Sampler):
    """For iterable data sets, which have an order of their own: None, again and again."""

    def __iter__(self):
        return itertools.repeat(None)


class DataLoader:
    """Iterate over it: one pass over the data set, in batches.

    num_workers: processes that make batches; each has up to prefetch_factor batches (2) in the making.
    timeout: seconds to wait for one. An exception in a worker is raised here, with the worker's traceback.
    persistent_workers keeps the processes for the next pass. pin_memory puts batches into page-locked
    memory, from which to("cuda", non_blocking=True) copies while the program goes on.
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None,
                 persistent_workers=False, pin_memory_device="", in_order=True):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.in_order = worker_init_fn, in_order
        self.persistent_workers = persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self._kind = "iterable" if isinstance(dataset, IterableDataset) else "map"
        if self._kind == "iterable":
            if shuffle:
                raise ValueError(f"DataLoader: an IterableDataset has its own order; leave shuffle={shuffle} "
                                 "out")
            for name, given in (("sampler", sampler), ("batch_sampler", batch_sampler)):
                if given is not None:
                    raise ValueError("DataLoader: an IterableDataset has its own order; leave "
                                     f"{name}={given} out")
            sampler = _Endless()
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or (sampler is not None) or drop_last:
                raise ValueError("batch_sampler decides on batch_size, shuffle, sampler and drop_last: "
                                 "leave these out")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None makes no batches, so there is none for drop_last to leave out")
        if sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.generator = batch_size, drop_last, generator
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self._workers = None
        self._initialized = True

    _fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    _initialized = False

    def __setattr__(self, name, value):
        if self._initialized and name in self._fixed:
            raise ValueError(f"{name} attribute should be given to {type(self).__name__}(): it is fixed "
                             "afterwards")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self):
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            if self.num_workers == 0:
                raise ValueError("multiprocessing_context is of use with num_workers > 0 only, and it is "
                                 f"{self.num_workers}")
            if isinstance(context, str):
                if context not in multiprocessing.get_all_start_methods():
                    raise ValueError(f"multiprocessing_context: {context!r} is no start method; there are "
                                     f"{multiprocessing.get_all_start_methods()!r}")
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError("multiprocessing_context takes a context of multiprocessing or the name of "
                                f"a start method, not {context}")
        self._context = context

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self):
        if self._kind == "map":
            return len(self._index_sampler)
        n = self._expected = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self):
        if self.num_workers == 0:
            return _here(self)
        if not self.persistent_workers:
            return _Pass(self, _Workers(self))
        if self._workers is None:
            self._workers = _Workers(self)
            return _Pass(self, self._workers)
        self._workers.start_again(draw_seed(self.generator))
        return _Pass(self, self._workers)

    def check_worker_number_rationality(self):
        """Nothing: PyTorch warns here of more workers than cores."""


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
    if num_workers < 0:
        raise ValueError("num_workers option should be 0 (load in this process) or positive.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor is for worker processes: give num_workers > 0 too, or leave it "
                         "None.")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError("prefetch_factor option should be positive")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _count_check(loader):
    """A function that warns once an iterable data set is longer than it says."""
    if loader._kind == "map":
        return lambda count: None
    warned = []

    def check(count):
        expected = getattr(loader, "_expected", None)
        if expected is not None and not warned and count > len(loader):
            warned.append(True)
            warnings.warn(f"IterableDataset {loader.dataset}: its length was reported to be {len(loader)}, "
                          f"but it has yielded {count} samples.", stacklevel=3)

    return check


def _here(loader):
    """Batches made in this process."""
    draw_seed(loader.generator)  # as with workers: the same numbers are left for the program
    source = fetcher(loader._kind, loader.dataset, loader._auto_collation, loader.collate_fn,
                     loader.drop_last)
    return _LocalPass(loader, source)


class _LocalPass:
    def __init__(self, loader, source):
        self._loader, self._source, self._indices = loader, source, iter(loader._index_sampler)
        self._yielded, self._check, self._pin = 0, _count_check(loader), pinner(loader)

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader._index_sampler)

    def __next__(self):
        batch = self._source.fetch(next(self._indices))
        self._yielded += 1
        self._check(self._yielded)
        return self._pin(batch)


class _Workers:
    """The processes of a loader, and the pipes to them."""

    def __init__(self, loader):
        context = loader.multiprocessing_context or multiprocessing.get_context()
        seed = draw_seed(loader.generator)
        inline = min(8192, _PIPE_BYTES // loader.prefetch_factor)
        self.pipes, self.processes, self._inline = [], [], inline
        self._stop = weakref.finalize(self, _stop, self.pipes, self.processes)
        for id in range(loader.num_workers):
            mine, theirs = context.Pipe()
            others = [mine, *self.pipes] if context.get_start_method() == "fork" else []
            process = context.Process(target=worker.run, daemon=True, args=(
                theirs, others, loader._kind, loader.dataset, loader._auto_collation, loader.collate_fn,
                loader.drop_last, seed, loader.worker_init_fn, id, loader.num_workers, inline))
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)
        self.waiting = [0] * len(self.pipes)  # questions without an answer

    def ask(self, id, question):
        try:
            self.pipes[id].send_bytes(transfer.pack(question, self._inline))
        except (BrokenPipeError, ConnectionResetError):
            self._died([self.processes[id]])
        if question[0] != "epoch":
            self.waiting[id] += 1

    def answers(self, timeout):
        """Answers, one at least, as a list of (worker, message). Raises RuntimeError if a worker died."""
        ends = {p.sentinel: p for p in self.processes}
        pipes = {pipe: i for i, pipe in enumerate(self.pipes)}
        ready = multiprocessing.connection.wait([*pipes, *ends], timeout or None)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        out = []
        for pipe in ready:
            if pipe in pipes:
                try:
                    out.append((pipes[pipe], pipe.recv_bytes()))
                except (EOFError, ConnectionResetError):
                    self._died([self.processes[pipes[pipe]]])
                self.waiting[pipes[pipe]] -= 1
        if not out:
            self._died([ends[e] for e in ready if e in ends])
        return out

    def _died(self, processes):
        for p in processes:
            p.join(1)
        pids, codes = ", ".join(str(p.pid) for p in processes), [p.exitcode for p in processes]
        reasons = ", ".join(f"killed by signal {-c}" if c is not None and c < 0 else f"exit code {c}"
                            for c in codes)
        self._stop()
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly: {reasons}. If it was "
                           "killed by the system, there may be too little memory")

    def start_again(self, seed):
        """Drops what is still in the making, and begins a new epoch."""
        while any(self.waiting):
            for _, message in self.answers(_JOIN_SECONDS):
                transfer.discard(message)
        for id in range(len(self.pipes)):
            self.ask(id, ("epoch", seed))

    def stop(self):
        self._stop()


def _stop(pipes, processes):
    """Ends the processes: when their loader is no more, or Python ends."""
    for pipe in pipes:
        pipe.close()  # they notice
    deadline = time.monotonic() + _JOIN_SECONDS
    for p in processes:
        p.join(0.02)
    for p in processes:
        if p.is_alive():
            p.terminate()
    for p in processes:
        p.join(max(0, deadline - time.monotonic()))
        if p.is_alive():
            p.kill()
            p.join()
        transfer.discard_all_of(p.pid)
    pipes.clear()
    processes.clear()


class _Pass:
    """One pass over the data, its batches made by workers.

    Question k goes to the next worker in turn that has data left; batches are given in the order of the
    questions (in_order), or as they come.
    """

    def __init__(self, loader, workers):
        self._loader, self._workers, self._indices = loader, workers, iter(loader._index_sampler)
        self._turn = itertools.cycle(range(loader.num_workers))
        self._has_data = [True] * loader.num_workers
        self._asked = self._given = self._yielded = 0
        self._owner, self._answers = {}, {}
        self._check, self._pin = _count_check(loader), pinner(loader)
        for _ in range(loader.prefetch_factor * loader.num_workers):
            self._ask()

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader._index_sampler)

    def _ask(self):
        limit = self._loader.prefetch_factor
        if self._workers is None:
            return
        for _ in range(self._loader.num_workers):
            id = next(self._turn)
            if self._has_data[id] and (self._loader.in_order or self._workers.waiting[id] < limit):
                break
        else:
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        self._workers.ask(id, (self._asked, index))
        self._owner[self._asked] = id
        self._asked += 1

    def __next__(self):
        while self._owner:
            number = self._next_number()
            if number is None:
                self._receive()
                continue
            answer = self._answers.pop(number)
            del self._owner[number]
            self._ask()
            if isinstance(answer, worker.EndOfData):
                continue
            if isinstance(answer, ExceptionWrapper):
                answer.reraise()
            self._yielded += 1
            self._check(self._yielded)
            return self._pin(answer)
        self._end()
        raise StopIteration

    def _next_number(self):
        """The question whose answer comes next, None if it is not there yet."""
        if not self._loader.in_order:
            return next(iter(self._answers), None)
        number = next(iter(self._owner))
        return number if number in self._answers else None

    def _receive(self):
        for id, message in self._workers.answers(self._loader.timeout):
            number, answer = transfer.unpack(message)
            if isinstance(answer, worker.EndOfData):
                self._has_data[id] = False
            self._answers[number] = answer

    def _end(self):
        if self._workers is not None and not self._loader.persistent_workers:
            self._workers.stop()
            self._workers = None
