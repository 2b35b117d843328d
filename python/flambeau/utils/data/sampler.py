"""Samplers: in which order samples are taken, and which form a batch."""
import itertools
from typing import Generic, TypeVar

import flambeau

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
           "WeightedRandomSampler"]

T_co = TypeVar("T_co", covariant=True)


def draw_seed(generator=None):
    """A random seed, from the generator or from the default one."""
    return flambeau.randint(0, 2**63 - 1, (), generator=generator, dtype=flambeau.int64).item()


def _count(name, value):
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")
    return value


class Sampler(Generic[T_co]):
    """A subclass has __iter__(), which gives indices (or lists of them), and usually __len__()."""

    def __init__(self, data_source=None):
        pass

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A random order; with replacement, num_samples independent draws."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement must be True or False, got {replacement}")
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = None if num_samples is None else _count("num_samples", num_samples)
        if self._num_samples is None:
            _count("num_samples", self.num_samples)

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n, wanted = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = flambeau.Generator()
            generator.manual_seed(draw_seed())
        while wanted > 0:
            if self.replacement:
                some = flambeau.randint(0, n, (min(32, wanted),), generator=generator, dtype=flambeau.int64)
            else:
                some = flambeau.randperm(n, generator=generator)[:wanted]
            yield from some.tolist()
            wanted -= len(some)

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        for i in flambeau.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """num_samples indices, drawn by weights that need not add up to 1."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement must be True or False, got {replacement}")
        self.num_samples = _count("num_samples", num_samples)
        self.weights = flambeau.as_tensor(weights, dtype=flambeau.float64)
        if self.weights.dim() != 1:
            raise ValueError("weights must have one dimension, but their shape is "
                             f"{tuple(self.weights.shape)}")
        self.replacement, self.generator = replacement, generator

    def __iter__(self):
        return iter(flambeau.multinomial(self.weights, self.num_samples, self.replacement,
                                         generator=self.generator).tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of batch_size indices of another sampler; the last one may be shorter unless drop_last."""

    def __init__(self, sampler, batch_size, drop_last):
        self.sampler, self.batch_size, self.drop_last = sampler, _count("batch_size", batch_size), drop_last
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last must be True or False, got {drop_last}")

    def __iter__(self):
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
