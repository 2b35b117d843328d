"""From what a sampler says to a batch."""
from ..dataset import _collates_itself, _samples
from .collate import default_collate


class MapFetcher:
    """Batches by indices."""

    def __init__(self, dataset, batched, collate_fn, drop_last):
        self.dataset, self.batched, self.collate_fn = dataset, batched, collate_fn
        self.at_once = batched and collate_fn is default_collate and _collates_itself(dataset)

    def fetch(self, index):
        if self.at_once:
            return self.dataset._collated(index)
        return self.collate_fn(_samples(self.dataset, index) if self.batched else self.dataset[index])


class IterableFetcher:
    """Batches of as many samples as there are indices. Raises StopIteration at the end."""

    def __init__(self, dataset, batched, collate_fn, drop_last):
        self.samples, self.batched, self.ended = iter(dataset), batched, False
        self.collate_fn, self.drop_last = collate_fn, drop_last

    def fetch(self, index):
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate_fn(next(self.samples))
        batch = []
        for _ in index:
            try:
                batch.append(next(self.samples))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.drop_last and len(batch) < len(index)):
            raise StopIteration
        return self.collate_fn(batch)


def fetcher(kind, dataset, batched, collate_fn, drop_last):
    return (IterableFetcher if kind == "iterable" else MapFetcher)(dataset, batched, collate_fn, drop_last)
