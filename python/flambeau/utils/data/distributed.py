"""DistributedSampler: every process takes its own part of a data set."""
import math

import flambeau

from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Of num_replicas processes, process `rank` gets every num_replicas-th index of an order that all share.

    Call set_epoch(epoch) before each epoch: another order. All parts are equally long: samples at the
    beginning are taken again, or with drop_last some at the end are left out.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if num_replicas is None or rank is None:
            if not flambeau.distributed.is_available():
                raise RuntimeError("Requires distributed package to be available: give num_replicas and rank")
            num_replicas = flambeau.distributed.get_world_size() if num_replicas is None else num_replicas
            rank = flambeau.distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"rank={rank} is not in 0 to {num_replicas - 1}, the ranks of {num_replicas} "
                             "replicas")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.drop_last, self.shuffle, self.seed = drop_last, shuffle, seed
        parts = len(dataset) / num_replicas
        self.num_samples = math.floor(parts) if drop_last else math.ceil(parts)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            generator = flambeau.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = flambeau.randperm(n, generator=generator).tolist()
        else:
            indices = list(range(n))
        if not self.drop_last and n:
            indices = indices * math.ceil(self.total_size / n)
        return iter(indices[self.rank:self.total_size:self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        self.epoch = epoch
