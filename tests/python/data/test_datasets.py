"""Data sets, samplers and collation."""
import collections

import numpy as np
import pytest

import flambeau as fl
from flambeau.utils import data
from flambeau.utils.data import default_collate, default_convert


def test_tensor_dataset():
    d = data.TensorDataset(fl.arange(4), fl.arange(8).reshape(4, 2))
    assert len(d) == 4 and [t.tolist() for t in d[2]] == [2, [4, 5]]
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(fl.ones(2), fl.ones(3))


def test_batches_of_tensor_datasets_are_gathered_at_once():
    x = fl.randn(6, 3, requires_grad=True)
    whole = data.TensorDataset(x, fl.arange(6))
    for dataset in (whole, data.Subset(whole, [5, 4, 3, 2, 1, 0]),
                    data.Subset(data.Subset(whole, [1, 2, 3]), [2, 0])):
        loader = data.DataLoader(dataset, 2)
        for got, start in zip(loader, range(0, 6, 2)):
            expected = default_collate([dataset[i] for i in range(start, start + 2)])
            assert type(got) is list and [g.tolist() for g in got] == [e.tolist() for e in expected]
    next(iter(loader))[0].sum().backward()
    assert x.grad.sum(1).tolist() == [0, 3, 0, 3, 0, 0]

    class Doubled(data.TensorDataset):
        def __getitem__(self, i):
            return self.tensors[0][i] * 2

    assert next(iter(data.DataLoader(Doubled(fl.arange(4)), 4))).tolist() == [0, 2, 4, 6]


def test_combined_datasets():
    both = data.ConcatDataset([range(3), range(10, 12)])
    assert len(both) == 5 and [both[i] for i in (0, 2, 3, 4, -1, -5)] == [0, 2, 10, 11, 11, 0]
    with pytest.raises(ValueError, match="should not exceed"):
        both[-6]
    assert list(data.Subset(range(10), [7, 3])) == [7, 3]
    assert data.StackDataset(range(3), "abc")[1] == (1, "b")
    named = data.StackDataset(number=range(3), letter="abc")
    assert named[2] == {"number": 2, "letter": "c"} and named.__getitems__([0, 1])[1] == {"number": 1,
                                                                                          "letter": "b"}

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter([1, 2])

    assert list(Stream() + Stream()) == [1, 2, 1, 2]


def test_random_split():
    parts = data.random_split(range(10), [3, 7], generator=fl.Generator().manual_seed(1))
    assert sorted([*parts[0], *parts[1]]) == list(range(10)) and len(parts[0]) == 3
    again = data.random_split(range(10), [3, 7], generator=fl.Generator().manual_seed(1))
    assert list(parts[0]) == list(again[0])
    assert [len(p) for p in data.random_split(range(10), [0.5, 0.25, 0.25])] == [6, 2, 2]
    with pytest.raises(ValueError, match="Sum of lengths"):
        data.random_split(range(10), [3, 3])


def test_samplers():
    assert list(data.SequentialSampler("abc")) == [0, 1, 2]
    assert sorted(data.RandomSampler(range(50))) == list(range(50)) != list(data.RandomSampler(range(50)))
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=100))
    assert len(drawn) == 100 and set(drawn) == {0, 1, 2}
    assert len(list(data.RandomSampler(range(3), num_samples=7))) == 7
    assert sorted(data.SubsetRandomSampler([5, 8, 2])) == [2, 5, 8]
    weighted = list(data.WeightedRandomSampler([0.0, 1.0, 3.0], 400))
    assert 0 not in weighted and 50 < weighted.count(1) < 150
    assert sorted(data.WeightedRandomSampler([1.0, 1.0], 2, replacement=False)) == [0, 1]
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert len(data.BatchSampler(range(5), 2, True)) == 2
    for bad in (lambda: data.BatchSampler(range(3), 0, False), lambda: data.RandomSampler([]),
                lambda: data.RandomSampler([1], num_samples=0)):
        with pytest.raises(ValueError, match="positive integer"):
            bad()


def test_distributed_sampler():
    parts = [list(data.DistributedSampler(range(10), 3, rank)) for rank in range(3)]
    assert [len(p) for p in parts] == [4, 4, 4] and set(sum(parts, [])) == set(range(10))
    assert list(data.DistributedSampler(range(7), 2, 1, shuffle=False, drop_last=True)) == [1, 3, 5]
    sampler = data.DistributedSampler(range(100), 2, 0)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first
    with pytest.raises(ValueError, match="rank=2"):
        data.DistributedSampler(range(3), 2, 2)


Point = collections.namedtuple("Point", "x y")


def test_collate():
    assert default_collate([1, 2]).dtype is fl.int64 and default_collate([1.5, 2.0]).dtype is fl.float64
    assert default_collate([True, False]).tolist() == [True, False]
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([fl.ones(2), fl.zeros(2)]).shape == (2, 2)
    assert default_collate([np.ones(3, np.float32)] * 2).dtype is fl.float32
    assert default_collate([np.float32(1), np.float32(2)]).dtype is fl.float32
    got = default_collate([{"a": 1, "b": [1.0, "x"]}, {"a": 2, "b": [3.0, "y"]}])
    assert got["a"].tolist() == [1, 2] and got["b"][0].tolist() == [1, 3] and got["b"][1] == ("x", "y")
    point = default_collate([Point(1, 2.0), Point(3, 4.0)])
    assert isinstance(point, Point) and point.x.tolist() == [1, 3]
    assert isinstance(default_collate([(1, 2), (3, 4)]), list)
    assert isinstance(default_collate([collections.OrderedDict(a=1)]), collections.OrderedDict)
    with pytest.raises(TypeError, match="cannot make a batch"):
        default_collate([object()])
    with pytest.raises(TypeError, match="cannot make a batch"):
        default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([[1], [1, 2]])


def test_collate_of_more_types():
    from flambeau.utils.data._utils.collate import collate
    assert (collate([{1}, {2}], collate_fn_map={set: lambda batch, collate_fn_map=None: set.union(*batch)})
            == {1, 2})


def test_convert():
    got = default_convert({"a": np.ones(2), "b": (1, "x"), "c": Point(np.zeros(1), 2)})
    assert got["a"].dtype is fl.float64 and got["b"] == [1, "x"] and isinstance(got["c"].x, fl.Tensor)
    assert default_convert(np.array(["a"])).dtype.kind == "U"
