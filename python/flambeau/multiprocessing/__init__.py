"""Python's multiprocessing, with tensors that processes share: what goes through a queue or a pipe, or to a
new process, is the same memory on both sides.
"""
import multiprocessing
import multiprocessing.context
import sys
from multiprocessing import *  # noqa: F403

from .reductions import init_reductions
from .spawn import (ProcessContext, ProcessException, ProcessExitedException, ProcessRaisedException,
                    SpawnContext, spawn, start_processes)

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy",
           *multiprocessing.__all__]

init_reductions()
_strategies = {"file_descriptor"} | ({"file_system"} if sys.platform not in ("darwin", "win32") else set())
_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy):
    """Kept for get_sharing_strategy() alone: memory is always shared by descriptors, which leave no file."""
    global _strategy
    if new_strategy not in _strategies:
        raise AssertionError(f"Invalid sharing strategy: {new_strategy}. Available strategies: {_strategies}")
    _strategy = new_strategy


def get_sharing_strategy():
    return _strategy


def get_all_sharing_strategies():
    return _strategies


def _set_thread_name(name):
    """Has no effect: Python names its threads itself."""


def _get_thread_name():
    import threading

    return threading.current_thread().name
