"""DataLoader: order, batches, workers, their errors and their ends."""
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import flambeau as fl
from flambeau.utils.data import (BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler,
                                 TensorDataset, get_worker_info)


class Numbers(Dataset):
    def __init__(self, n, do=lambda i: None):
        self.n, self.do = n, do

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        self.do(i)
        return i


class Stream(IterableDataset):
    """0 to n - 1, divided among the workers."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        return iter(range(self.n) if info is None else range(info.id, self.n, info.num_workers))

    def __len__(self):
        return self.n


def batches(loader):
    return [b.tolist() for b in loader]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_order_and_batches(workers):
    assert batches(DataLoader(Numbers(7), 3, num_workers=workers)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches(DataLoader(Numbers(7), 3, drop_last=True, num_workers=workers)) == [[0, 1, 2], [3, 4, 5]]
    assert list(DataLoader(Numbers(3), batch_size=None, num_workers=workers)) == [0, 1, 2]
    sampler = BatchSampler(SequentialSampler(range(5)), 2, False)
    assert batches(DataLoader(Numbers(5), batch_sampler=sampler, num_workers=workers)) == [[0, 1],
                                                                                           [2, 3], [4]]
    assert (sorted(sum(batches(DataLoader(Numbers(9), 2, shuffle=True, num_workers=workers)), []))
            == list(range(9)))
    assert batches(DataLoader(Numbers(0), 3, num_workers=workers)) == []


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_iterable(workers):
    loader = DataLoader(Stream(11), 2, num_workers=workers)
    got = batches(loader)
    assert sorted(sum(got, [])) == list(range(11)) and len(loader) == 6
    if workers == 3:  # in turn, as long as a worker has data
        assert got == [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8]]
    assert sorted(DataLoader(Stream(5), batch_size=None, num_workers=workers)) == list(range(5))


@pytest.mark.parametrize("workers", [0, 2])
def test_tensors_arrive_as_they_are(workers):
    values = {"big": fl.randn(100, 50), "bf16": fl.randn(3, 5000).bfloat16(), "none": fl.empty(0, 3),
              "bool": fl.tensor([True, False]), "array": np.arange(6000.0), "text": "abc",
              "complex": fl.tensor([1 + 2j, 3j]), "transposed": fl.randn(40, 90).T}
    loader = DataLoader([values, values], batch_size=None, collate_fn=lambda x: x, num_workers=workers)
    for got in loader:
        assert got["text"] == "abc" and got["bf16"].dtype is fl.bfloat16 and got["none"].shape == (0, 3)
        for name in ("big", "bool", "complex", "transposed"):
            np.testing.assert_array_equal(got[name].numpy(), values[name].numpy())
        np.testing.assert_array_equal(got["bf16"].float().numpy(), values["bf16"].float().numpy())
        np.testing.assert_array_equal(got["array"], values["array"])
        got["big"] += 1  # its memory can be written


def test_batches_outlive_their_workers():
    loader = DataLoader(TensorDataset(fl.arange(40000).reshape(4, 10000)), num_workers=1)
    got = [b[0] for b in loader]
    time.sleep(0.1)
    assert [b[0, 0].item() for b in got] == [0, 10000, 20000, 30000]
    assert not [f for f in os.listdir("/dev/shm") if f.startswith(f"flambeau-{os.getuid()}-")]


def test_same_order_by_the_generator():
    def order():
        return batches(DataLoader(Numbers(20), 5, shuffle=True, generator=fl.Generator().manual_seed(3)))

    assert order() == order()
    fl.manual_seed(5)
    first = batches(DataLoader(Numbers(20), 5, shuffle=True))
    fl.manual_seed(5)
    assert batches(DataLoader(Numbers(20), 5, shuffle=True, num_workers=2)) == first
    assert batches(DataLoader(Numbers(20), 5, shuffle=True)) != first


def test_workers_have_seeds_of_their_own():
    class Seeds(Numbers):
        def __getitem__(self, i):
            info = get_worker_info()
            return (info.id, info.num_workers, info.seed, fl.initial_seed(), random.random(),
                    fl.rand(()).item())

    def seeds():
        loader = DataLoader(Seeds(4), 1, num_workers=2, collate_fn=lambda b: b[0],
                            generator=fl.Generator().manual_seed(1))
        return list(loader)

    got = seeds()
    assert [g[:2] for g in got] == [(0, 2), (1, 2), (0, 2), (1, 2)]
    assert got[1][2] == got[0][2] + 1 and all(g[2] == g[3] for g in got)
    assert len({g[4] for g in got}) == 4 and len({g[5] for g in got}) == 4
    assert seeds() == got
    assert get_worker_info() is None


def test_worker_init_fn():
    def start(id):
        get_worker_info().dataset.n = 100 + id

    class Which(Numbers):
        def __getitem__(self, i):
            return self.n

    assert batches(DataLoader(Which(2), 1, num_workers=2, worker_init_fn=start)) == [[100], [101]]


def test_persistent_workers():
    class Pids(Numbers):
        def __getitem__(self, i):
            return os.getpid()

    loader = DataLoader(Pids(4), 1, num_workers=2, persistent_workers=True)
    first = batches(loader)
    assert batches(loader) == first and len({p for b in first for p in b}) == 2
    next(iter(loader))  # abandoned in the middle
    assert batches(loader) == first
    stream = DataLoader(Stream(6), 2, num_workers=2, persistent_workers=True)
    assert batches(stream) == batches(stream)
    processes = loader._workers.processes[:]
    del loader
    assert not any(p.is_alive() for p in processes)


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_are_raised_here(workers):
    def fail(i):
        if i == 3:
            raise KeyError("the third")

    seen = []
    with pytest.raises(KeyError) as caught:
        for batch in DataLoader(Numbers(6, fail), 1, num_workers=workers):
            seen.append(batch.item())
    assert seen == [0, 1, 2]
    if workers:
        text = str(caught.value)
        assert "in DataLoader worker process 1" in text and 'raise KeyError("the third")' in text


def test_an_error_of_init_and_one_that_cannot_be_made():
    class Odd(Exception):
        def __init__(self, a, b):
            super().__init__(a, b)

    def odd(i):
        raise Odd(1, 2)

    with pytest.raises(RuntimeError, match="Caught Odd in DataLoader worker process 0"):
        next(iter(DataLoader(Numbers(3, odd), num_workers=1)))
    with pytest.raises(ValueError, match="no start"):
        next(iter(DataLoader(Numbers(3), num_workers=1,
                             worker_init_fn=lambda id: (_ for _ in ()).throw(ValueError("no start")))))
    with pytest.raises(Exception, match="(?s)in DataLoader worker process 0.*(pickle|get local object)"):
        next(iter(DataLoader([lambda: 0], num_workers=1, collate_fn=lambda b: b)))


def test_a_killed_worker_is_reported():
    def die(i):
        if i == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    start = time.time()
    with pytest.raises(RuntimeError,
                       match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly: killed by signal 9"):
        list(DataLoader(Numbers(6, die), 1, num_workers=2))
    assert time.time() - start < 20


def test_timeout():
    with pytest.raises(RuntimeError, match="timed out after 0.2 seconds"):
        list(DataLoader(Numbers(2, lambda i: time.sleep(30)), num_workers=1, timeout=0.2))


def test_no_process_is_left():
    loader = DataLoader(Numbers(1000), 1, num_workers=2)
    it = iter(loader)
    next(it)
    processes = it._workers.processes[:]
    assert all(p.is_alive() for p in processes)
    del it
    assert not any(p.is_alive() for p in processes)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return bool(file.read())
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("how", ["interrupt", "kill"])
def test_workers_end_with_their_program(how):
    program = textwrap.dedent("""
        import signal, sys, time
        from flambeau.utils.data import DataLoader
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with it ignored
        def show(b):
            time.sleep(0.05)
            return b
        it = iter(DataLoader(range(10000), 1, num_workers=2, collate_fn=show))
        next(it)
        print(*[p.pid for p in it._workers.processes], flush=True)
        for _ in it: pass
    """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    pids = [int(p) for p in process.stdout.readline().split()]
    assert len(pids) == 2
    process.send_signal(signal.SIGINT if how == "interrupt" else signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    if how == "interrupt":
        assert "KeyboardInterrupt" in errors
    deadline = time.time() + 15
    while time.time() < deadline and any(map(is_running, pids)):
        time.sleep(0.1)
    assert not any(map(is_running, pids))


def test_out_of_order():
    loader = DataLoader(Numbers(8, lambda i: time.sleep(0.3) if i == 0 else None), 1, num_workers=2,
                        in_order=False)
    got = [b.item() for b in loader]
    assert sorted(got) == list(range(8)) and got[0] != 0


def test_length_of_a_stream_is_checked():
    loader = DataLoader(Stream(3), 1)
    loader.dataset.__class__ = type("Lies", (Stream,), {"__len__": lambda self: 1})
    assert len(loader) == 1
    with pytest.warns(UserWarning, match="was reported to be 1"):
        list(loader)


@pytest.mark.parametrize("options, error, message", [
    (dict(num_workers=-1), ValueError, "num_workers"), (dict(timeout=-1), ValueError, "timeout"),
    (dict(prefetch_factor=2), ValueError, "prefetch_factor"),
    (dict(persistent_workers=True), ValueError, "persistent_workers"),
    (dict(shuffle=True, sampler=[0]), ValueError, "mutually exclusive"),
    (dict(batch_sampler=[[0]], batch_size=2), ValueError, "batch_sampler"),
    (dict(batch_size=None, drop_last=True), ValueError, "drop_last"),
    (dict(batch_size=0), ValueError, "batch_size"),
    (dict(multiprocessing_context="fork"), ValueError, "num_workers"),
    (dict(num_workers=1, multiprocessing_context="x"), ValueError, "start method"),
])
def test_refuses(options, error, message):
    with pytest.raises(error, match=message):
        DataLoader(Numbers(3), **options)


def test_attributes_are_fixed():
    loader = DataLoader(Numbers(3))
    with pytest.raises(ValueError, match="batch_size attribute should be given"):
        loader.batch_size = 2
    with pytest.raises(ValueError, match="leave shuffle=True out"):
        DataLoader(Stream(3), shuffle=True)


@pytest.mark.skipif(not hasattr(fl.Tensor, "untyped_storage"), reason="tensors can not be pickled yet")
def test_spawned_workers():
    assert (batches(DataLoader(fl.arange(6), 2, num_workers=1, multiprocessing_context="spawn"))
            == [[0, 1], [2, 3], [4, 5]])
