"""Attention whose scores and mask are functions that the user writes."""
import math
from collections import namedtuple

import flambeau as fl

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask",
           "create_nested_block_mask", "flex_attention", "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_score_mod_signature = _mask_mod_signature = object  # PyTorch's names of the two types, for annotations

AuxOutput = namedtuple("AuxOutput", ["lse", "max_scores"], defaults=(None, None))
AuxRequest = namedtuple("AuxRequest", ["lse", "max_scores"], defaults=(False, False))


def noop_mask(batch, head, q_idx, kv_idx):
    """Everything is seen."""
    return fl.ones((), dtype=fl.bool, device=getattr(q_idx, "device", None))


def and_masks(*mask_mods):
    """The mask that is True where all are."""
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def both(b, h, q, kv):
        result = noop_mask(b, h, q, kv)
        for mask in mask_mods:
            result = result & mask(b, h, q, kv)
        return result

    return both


def or_masks(*mask_mods):
    """The mask that is True where any is."""
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def either(b, h, q, kv):
        result = ~noop_mask(b, h, q, kv)
        for mask in mask_mods:
            result = result | mask(b, h, q, kv)
        return result

    return either


def _positions(B, H, Q, KV, device):
    """Index tensors of batch, head, query and key that broadcast to (B, H, Q, KV)."""
    return (fl.arange(B, device=device).view(-1, 1, 1, 1), fl.arange(H, device=device).view(1, -1, 1, 1),
            fl.arange(Q, device=device).view(1, 1, -1, 1), fl.arange(KV, device=device).view(1, 1, 1, -1))


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """A mask function's values as a tensor of booleans (B, H, Q_LEN, KV_LEN)."""
    B, H = B or 1, H or 1
    return mod_fn(*_positions(B, H, Q_LEN, KV_LEN, device)).expand(B, H, Q_LEN, KV_LEN)


class BlockMask:
    """A mask by a function, with the blocks in which it is not False everywhere.

    kv_num_blocks (B, H, rows of blocks) and kv_indices name the blocks of each row that hold something.
    """

    def __init__(self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None,
                 BLOCK_SIZE=(_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE), mask_mod=None):
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod or noop_mask

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None,
                       BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, mask_mod=None, seq_lengths=None,
                       compute_q_blocks=True):
        sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * sizes[0], kv_indices.shape[-1] * sizes[1])
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, sizes,
                   mask_mod)

    @property
    def shape(self):
        return (*self.kv_num_blocks.shape[:-1], *self.seq_lengths)

    def numel(self):
        return math.prod(self.shape)

    def to_dense(self):
        """1 for every block that holds something, (B, H, rows of blocks, columns of blocks)."""
        columns = -(-self.seq_lengths[1] // self.BLOCK_SIZE[1])

        def dense(counts, indices):
            used = fl.arange(indices.shape[-1], device=indices.device) < counts.unsqueeze(-1)
            grid = fl.zeros((*indices.shape[:-1], columns + 1), dtype=fl.int32, device=indices.device)
            places = fl.where(used, indices, fl.full_like(indices, columns)).to(fl.int64)
            return grid.scatter(-1, places, fl.ones_like(places, dtype=fl.int32))[..., :columns]

        partial = dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None:
            return partial
        return fl.maximum(partial, dense(self.full_kv_num_blocks, self.full_kv_indices))

    def sparsity(self):
        """The share of blocks without anything, in percent."""
        dense = self.to_dense()
        return 100 * (1 - float(dense.sum()) / max(dense.numel(), 1))

    def to(self, device):
        moved = [None if t is None else t.to(device) for t in (self.kv_num_blocks, self.kv_indices,
                                                               self.full_kv_num_blocks, self.full_kv_indices)]
        return BlockMask(self.seq_lengths, *moved, self.BLOCK_SIZE, self.mask_mod)

    def __str__(self):
        return f"BlockMask(shape={tuple(self.shape)}, sparsity={self.sparsity():.2f}%)"

    __repr__ = __str__


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
                      _compile=False):
    """The BlockMask of mask_mod(batch, head, q_idx, kv_idx) -> bool. B or H None: the same for all.

    _compile has no effect.
    """
    sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // sizes[0]), -(-KV_LEN // sizes[1])
    padded = fl.constant_pad_nd(mask, [0, columns * sizes[1] - KV_LEN, 0, rows * sizes[0] - Q_LEN], 0)
    blocks = padded.reshape(*mask.shape[:2], rows, sizes[0], columns, sizes[1])
    counts = blocks.to(fl.int64).sum(dim=(3, 5))
    whole = sizes[0] * sizes[1]

    def listed(wanted):
        numbers = wanted.to(fl.int32)
        order = fl.argsort(numbers, dim=-1, descending=True, stable=True)
        return numbers.sum(dim=-1, dtype=fl.int32), order.to(fl.int32)

    partial = listed((counts > 0) & (counts < whole))
    full = listed(counts == whole)
    return BlockMask((Q_LEN, KV_LEN), *partial, *full, sizes, mask_mod)


def create_nested_block_mask(*args, **kwargs):
    raise NotImplementedError("create_nested_block_mask: nested tensors are not supported")


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False,
                   return_lse=False, kernel_options=None, *, return_aux=None):
    """softmax(score_mod(Q K^T scale)) V on (batch, heads, length, width).

    score_mod(score, batch, head, q_idx, kv_idx) gets all scores at once, with indices that broadcast;
    block_mask takes positions out. Under compile() this becomes a fused program; kernel_options has no
    effect.
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 4:
            raise ValueError(f"{name} must be a 4D tensor, got {tensor.dim()}D")
    if enable_gqa:
        if query.size(1) % key.size(1):
            raise ValueError(f"'query' has {query.size(1)} heads; with enable_gqa=True that has to be a "
                             f"multiple of the {key.size(1)} heads of 'key' and 'value'.")
        groups = query.size(1) // key.size(1)
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    elif query.size(1) != key.size(1):
        raise ValueError(f"'query' has {query.size(1)} heads, 'key' and 'value' have {key.size(1)}; they "
                         "have to agree unless enable_gqa=True.")
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    dtype = fl.float64 if query.dtype == fl.float64 else fl.float32
    scores = (query.to(dtype) @ key.to(dtype).transpose(-2, -1)) * scale
    batch, heads, targets, sources = scores.shape
    at = _positions(batch, heads, targets, sources, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *at).to(dtype)
    if block_mask is not None:
        mask = block_mask.mask_mod(*at)
        scores = scores.masked_fill(~mask, -math.inf)
    maxima = scores.amax(-1, keepdim=True)
    finite = fl.where(maxima == -math.inf, fl.zeros_like(maxima), maxima)
    weights = (scores - finite).exp()
    total = weights.sum(-1, keepdim=True)
    safe = fl.where(total == 0, fl.ones_like(total), total)  # a row that sees nothing gives zeros
    output = ((weights / safe).to(value.dtype) @ value).to(query.dtype)
    lse = (finite + total.log()).squeeze(-1)
    if return_aux is not None:
        return output, AuxOutput(lse if return_aux.lse else None,
                                 maxima.squeeze(-1) if return_aux.max_scores else None)
    return (output, lse) if return_lse else output
