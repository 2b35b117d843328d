"""A worker process: takes what the loader sends, indices of a batch, and sends the batch back."""
import os
import random
import signal
import sys
from dataclasses import dataclass
from typing import Any

import flambeau

from . import transfer
from .failure import ExceptionWrapper
from .fetch import fetcher

_info = None
_CHECK_SECONDS = 5


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker this process is: id of num_workers, its seed, and its copy of the data set."""
    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info():
    """In a worker process its WorkerInfo, elsewhere None."""
    return _info


class EndOfData:
    """What a worker sends when its iterable data set has ended."""


def _seed_all(seed):
    random.seed(seed)
    flambeau.manual_seed(seed)
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        numpy.random.seed(numpy.random.SeedSequence(seed).generate_state(4))


def run(pipe, others, kind, dataset, batched, collate_fn, drop_last, base_seed, init_fn, id, count, inline):
    """The process's main function. others: ends of pipes that belong to the parent, closed here.

    Messages to it: (number, index) asks for a batch; ("epoch", seed) starts an epoch anew; None ends it.
    Every question gets an answer (number, batch or ExceptionWrapper or EndOfData).
    """
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    for end in others:
        end.close()
    parent = os.getppid()
    flambeau.set_num_threads(1)
    _seed_all(base_seed + id)
    _info = WorkerInfo(id, count, base_seed + id, dataset)
    where, failure, source = f"in DataLoader worker process {id}", None, None
    try:
        if init_fn is not None:
            init_fn(id)
        source = fetcher(kind, dataset, batched, collate_fn, drop_last)
    except Exception:
        failure = ExceptionWrapper(where=where)
    try:
        while (question := _receive(pipe, parent)) is not None:
            number, index = question
            if number == "epoch":
                _info = WorkerInfo(id, count, index + id, dataset)
                failure = None
                try:
                    source = fetcher(kind, dataset, batched, collate_fn, drop_last)
                except Exception:
                    failure = ExceptionWrapper(where=where)
                continue
            answer = failure
            if answer is None:
                try:
                    answer = source.fetch(index)
                except StopIteration:
                    answer = EndOfData() if kind == "iterable" else ExceptionWrapper(where=where)
                except Exception:
                    answer = ExceptionWrapper(where=where)
            try:
                message = transfer.pack((number, answer), inline)
            except Exception:
                if isinstance(answer, ExceptionWrapper):  # its type can't be named elsewhere
                    answer.exc_type = RuntimeError
                else:
                    answer = ExceptionWrapper(where=where)
                message = transfer.pack((number, answer), inline)
            pipe.send_bytes(message)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


def _receive(pipe, parent):
    """The next message, or None if the parent is no more."""
    while not pipe.poll(_CHECK_SECONDS):
        if os.getppid() != parent:
            return None
    return transfer.unpack(pipe.recv_bytes())
