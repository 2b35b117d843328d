"""Sequences of different lengths: padded to one length, or packed step by step."""
from collections import namedtuple

import flambeau as fl

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
           "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence"]

_Packed = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Packed):
    """Sequences one step after the other: data holds the first elements of all, then the second ones, ...

    batch_sizes: how many sequences have each step. The sequences are sorted by length, longest first:
    sorted_indices says in which order the user gave them, unsorted_indices is the inverse. Made by
    pack_padded_sequence.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("expected (data, batch_sizes)")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(f"'batch_sizes' must be on the CPU, got {batch_sizes.device}. Make packed "
                             "sequences by pack_sequence() or pack_padded_sequence(), which see to it.")
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def pin_memory(self):
        return self._with(lambda t: t.pin_memory())

    def _with(self, data, indices=None):
        indices = indices or data
        orders = (None if i is None else indices(i) for i in self[2:])
        return type(self)(data(self.data), self.batch_sizes, *orders)

    def to(self, *args, **kwargs):
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return self._with(lambda t: data, lambda i: i.to(data.device))

    def cuda(self, *args, **kwargs):
        return self._with(lambda t: t.cuda(*args, **kwargs))

    def cpu(self):
        return self._with(lambda t: t.cpu())

    def double(self):
        return self.to(dtype=fl.float64)

    def float(self):
        return self.to(dtype=fl.float32)

    def half(self):
        return self.to(dtype=fl.float16)

    def long(self):
        return self.to(dtype=fl.int64)

    def int(self):
        return self.to(dtype=fl.int32)

    def short(self):
        return self.to(dtype=fl.int16)

    def char(self):
        return self.to(dtype=fl.int8)

    def byte(self):
        return self.to(dtype=fl.uint8)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()


def invert_permutation(permutation):
    """The permutation that undoes another one."""
    if permutation is None:
        return None
    positions = fl.arange(0, permutation.numel(), device=permutation.device)
    return fl.empty_like(permutation).scatter_(0, permutation, positions.to(permutation.dtype))


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Packs (length, batch, ...), whose sequences have the given lengths.

    enforce_sorted: the lengths must be descending; otherwise the sequences are sorted.
    """
    lengths = fl.as_tensor(lengths, dtype=fl.int64, device="cpu")
    if enforce_sorted:
        order = None
    else:
        lengths, order = fl.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    counts = lengths.tolist()
    if len(counts) != input.size(1):
        raise RuntimeError(f"pack_padded_sequence(): 'lengths' must have {input.size(1)} numbers, one for "
                           f"each sequence; got {len(counts)}")
    if not counts or min(counts) <= 0:
        raise RuntimeError("pack_padded_sequence(): every length must be at least 1, and there must be one; "
                           f"got {counts}")
    if any(a < b for a, b in zip(counts, counts[1:])):
        raise RuntimeError("pack_padded_sequence(): 'lengths' must be sorted in decreasing order; pass "
                           "enforce_sorted=False to have the sequences sorted")
    sizes = [sum(length > step for length in counts) for step in range(counts[0])]
    data = fl.cat([input[step, :size] for step, size in enumerate(sizes)])
    return PackedSequence(data, fl.tensor(sizes, dtype=fl.int64), order, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded form of a packed sequence, and the lengths."""
    sizes = sequence.batch_sizes.tolist()
    length = len(sizes)
    if total_length is not None:
        if total_length < length:
            raise ValueError(f"'total_length' must be at least {length}, the longest sequence's length; "
                             f"got {total_length}")
        length = total_length
    rest = sequence.data.shape[1:]
    steps = []
    for step in sequence.data.split(sizes):
        missing = sizes[0] - step.size(0)
        steps.append(step if not missing else fl.cat([step, step.new_full((missing, *rest), padding_value)]))
    padded = fl.stack(steps)
    if length > len(sizes):
        padded = fl.cat([padded, padded.new_full((length - len(sizes), sizes[0], *rest), padding_value)])
    lengths = fl.tensor([sum(size > k for size in sizes) for k in range(sizes[0])], dtype=fl.int64)
    if batch_first:
        padded = padded.transpose(0, 1)
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths.index_select(0, order.cpu())


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Tensors of different lengths as one (length, batch, ...), filled up with padding_value."""
    if isinstance(sequences, fl.Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError("pad_sequence(): 'sequences' must be an iterable of tensors, "
                           f"got {type(sequences)}")
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence(): 'sequences' is empty")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"pad_sequence(): 'padding_side' must be 'left' or 'right', got {padding_side!r}.")
    length = max(s.size(0) for s in sequences)
    rest = sequences[0].shape[1:]
    padded = []
    for s in sequences:
        filling = s.new_full((length - s.size(0), *rest), padding_value)
        parts = [s, filling] if padding_side == "right" else [filling, s]
        padded.append(s if s.size(0) == length else fl.cat(parts))
    return fl.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The list of tensors that pad_sequence made one tensor of."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[:int(length)] for sequence, length in zip(padded_sequences, lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    """Packs a list of tensors of different lengths."""
    lengths = fl.tensor([s.size(0) for s in sequences], dtype=fl.int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The list of tensors that pack_sequence took."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
