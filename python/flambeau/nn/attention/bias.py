"""Masks that are known by their form."""
import enum

import flambeau as fl

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal of a causal mask that is not square starts."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias:
    """A causal mask, target by source length; materialize() gives it as booleans, True where to look."""

    def __init__(self, variant, seq_len_q, seq_len_kv):
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            raise ValueError(f"A LOWER_RIGHT mask of {seq_len_q} targets over {seq_len_kv} sources would "
                             "leave rows with nothing to look at, hence NaN; 'seq_len_q' may not exceed "
                             "'seq_len_kv'.")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv

    def materialize(self, device=None):
        diagonal = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        return fl.ones((self.seq_len_q, self.seq_len_kv), device=device, dtype=fl.bool).tril(diagonal)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is not fl.scaled_dot_product_attention:
            raise NotImplementedError(f"{cls.__name__} is a mask for scaled_dot_product_attention(); give "
                                      f"{func.__name__}() its materialize()")
        return cls._attention(*args, **(kwargs or {}))

    @staticmethod
    def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **options):
        if is_causal:
            raise ValueError("scaled_dot_product_attention(): a CausalBias as attn_mask is causal by itself: "
                             "leave is_causal out")
        sizes = query.size(-2), key.size(-2)
        if sizes != (attn_mask.seq_len_q, attn_mask.seq_len_kv):
            raise ValueError("scaled_dot_product_attention(): the mask is for "
                             f"{attn_mask.seq_len_q} targets over {attn_mask.seq_len_kv} sources, query and "
                             f"key have {sizes[0]} and {sizes[1]}")
        is_causal = attn_mask.variant == CausalVariant.UPPER_LEFT or sizes[0] == sizes[1]
        mask = None if is_causal else attn_mask.materialize(query.device)
        return fl.scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, **options)


def causal_upper_left(*size):
    """The causal mask whose diagonal starts in the upper left corner."""
    if len(size) != 2:
        raise RuntimeError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size):
    """The causal mask whose diagonal ends in the lower right corner."""
    if len(size) != 2:
        raise RuntimeError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
