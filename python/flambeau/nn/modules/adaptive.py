"""Softmax over many classes, the rare ones in clusters."""
from collections import namedtuple

import flambeau as fl
from flambeau.nn import functional as F
from flambeau.nn.modules.container import ModuleList, Sequential
from flambeau.nn.modules.linear import Linear
from flambeau.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Adaptive softmax (Grave et al., 2017): classes sorted by frequency and divided at the cutoffs.

    The head decides among frequent classes and clusters; each cluster has a smaller projection, by div_value.
    forward(input, target) gives the log-probabilities of the targets and the loss.
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None,
                 dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("'cutoffs' is empty; it needs at least one number")
        if (cutoffs != sorted(cutoffs) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1
                or len(set(cutoffs)) != len(cutoffs) or any(int(c) != c for c in cutoffs)):
            raise ValueError(f"'cutoffs' has to be integers from 1 to n_classes - 1 ({n_classes - 1}) that "
                             f"grow strictly, not {cutoffs}")
        how = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **how)
        self.tail = ModuleList()
        for k in range(self.n_clusters):
            width = int(in_features // div_value ** (k + 1))
            classes = self.cutoffs[k + 1] - self.cutoffs[k]
            self.tail.append(Sequential(Linear(in_features, width, bias=False, **how),
                                        Linear(width, classes, bias=False, **how)))

    def reset_parameters(self):
        self.head.reset_parameters()
        for down, up in self.tail:
            down.reset_parameters()
            up.reset_parameters()

    def forward(self, input_, target_):
        batched = target_.dim() > 0
        if target_.dim() > 1:
            raise RuntimeError(f"'target' has {target_.dim()} dimensions; it needs 0 or 1, one class for "
                               "each input")
        if batched and input_.shape[0] != target_.shape[0]:
            raise RuntimeError(f"'input' holds a batch of {input_.shape[0]}, 'target' one of "
                               f"{target_.shape[0]}; they have to agree.")
        if input_.dim() != (2 if batched else 1):
            raise RuntimeError(f"{1 + batched}D target tensor expects {2 if batched else 1}D input tensors, "
                               f"but found inputs with size {input_.size()}")
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel() and (int(target.min()) < 0 or int(target.max()) >= self.n_classes):
            raise RuntimeError(f"'target' reaches from {int(target.min())} to {int(target.max())}; classes "
                               f"go from 0 to {self.n_classes - 1}.")
        output = self._log_probabilities(input, target)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _log_probabilities(self, input, target):
        """Of each target: the head's entry (a class or a cluster), plus the class's within its cluster."""
        entry = target.clone()
        within = input.new_zeros(target.size(0))
        for k in range(self.n_clusters):
            here = (target >= self.cutoffs[k]) & (target < self.cutoffs[k + 1])
            rows = here.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            log_probs = F.log_softmax(self.tail[k](input.index_select(0, rows)), dim=1)
            relative = target.index_select(0, rows) - self.cutoffs[k]
            entry = entry.masked_fill(here, self.shortlist_size + k)
            within = within.index_copy(0, rows, log_probs.gather(1, relative.unsqueeze(1)).squeeze(1))
        head = F.log_softmax(self.head(input), dim=1)
        return within + head.gather(1, entry.unsqueeze(1)).squeeze(1)

    def _get_full_log_prob(self, input, head_output):
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, :self.shortlist_size]]
        for k, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, self.shortlist_size + k].unsqueeze(1))
        return fl.cat(parts, dim=1)

    def log_prob(self, input):
        """The log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most likely class of each row; the clusters are computed only where the head chose one."""
        head = self.head(input)
        output = head.argmax(dim=1)
        in_cluster = output >= self.shortlist_size
        if not bool(in_cluster.any()):
            return output
        rows = in_cluster.nonzero().squeeze(1)
        full = self._get_full_log_prob(input.index_select(0, rows), head.index_select(0, rows))
        return output.index_copy(0, rows, full.argmax(dim=1))
