"""Tensors that processes share, and processes that run one function."""
import gc
import os
import signal

import pytest

import flambeau as fl
import flambeau.multiprocessing as mp


def add_one(tensor, done=None):
    tensor += 1
    if done is not None:
        done.set()


def test_forked_processes_see_shared_memory():
    shared, own = fl.zeros(3).share_memory_(), fl.zeros(3)
    assert shared.is_shared() and not own.is_shared()
    for t in (shared, own):
        process = mp.get_context("fork").Process(target=add_one, args=(t,))
        process.start()
        process.join()
        assert process.exitcode == 0
    assert shared.tolist() == [1, 1, 1] and own.tolist() == [0, 0, 0]


def test_through_a_queue():
    context = mp.get_context("fork")
    there, back, read = context.Queue(), context.Queue(), context.Event()

    def work():
        x, done = there.get()
        x *= 10
        back.put({"view": x[1:], "new": fl.full((2,), 7.0), "empty": fl.zeros(0, 2),
                  "p": fl.nn.Parameter(fl.ones(1))})
        read.wait(20)

    process = context.Process(target=work)
    process.start()
    x = fl.arange(4).float()
    there.put((x, 0))
    got = back.get(timeout=20)
    assert x.is_shared() and x.tolist() == [0, 10, 20, 30]
    assert (got["view"].tolist() == [10, 20, 30] and got["new"].tolist() == [7, 7]
            and got["empty"].shape == (0, 2))
    assert isinstance(got["p"], fl.nn.Parameter)
    got["view"][0] = -1
    assert x[1].item() == -1
    read.set()
    process.join()


def test_what_can_not_be_sent():
    x = fl.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="not a leaf"):
        mp.reductions.reduce_tensor(x)


def test_memory_is_given_back():
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        fl.zeros(1000).share_memory_()
    assert len(os.listdir("/proc/self/fd")) <= before


def fail(i):
    if i == 1:
        raise ValueError("the second")


def die(i):
    os.kill(os.getpid(), signal.SIGKILL)


def put(i, t):
    t[i] = i + 1


def test_start_processes():
    t = fl.zeros(3).share_memory_()
    mp.start_processes(put, (t,), nprocs=3, start_method="fork")
    assert t.tolist() == [1, 2, 3]
    with pytest.raises(mp.ProcessRaisedException, match="(?s)Process 1 terminated.*ValueError: the second"):
        mp.start_processes(fail, nprocs=2, start_method="fork")
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
        mp.start_processes(die, nprocs=1, start_method="fork")


def test_names():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError, match="Invalid sharing strategy"):
        mp.set_sharing_strategy("pigeon")
