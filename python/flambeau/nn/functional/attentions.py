"""Attention."""
import math
import warnings

import flambeau as fl
from flambeau import scaled_dot_product_attention  # noqa: F401

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask of booleans (True: do not look there) as numbers to add; floating ones stay."""
    if mask is None:
        return None
    if mask.dtype != fl.bool and not mask.is_floating_point():
        raise AssertionError(f"{mask_name} must hold booleans or floating numbers, got {mask.dtype}")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"{mask_name} and {other_name} have different dtypes, which is deprecated; give both "
                      "one dtype.", stacklevel=3)
    if mask.is_floating_point():
        return mask
    return fl.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    return fl.linear(q, w_q, b_q), fl.linear(k, w_k, b_k), fl.linear(v, w_v, b_v)


def _in_projection_packed(q, k, v, w, b=None):
    """Projections whose weights lie in one matrix: one product where the inputs are one tensor."""
    width = q.size(-1)
    if k is v and q is k:
        return fl.linear(q, w, b).chunk(3, dim=-1)
    w_q, w_k, w_v = w.chunk(3)
    b_q, b_k, b_v = (None, None, None) if b is None else b.split(width)
    return _in_projection(q, k, v, w_q, w_k, w_v, b_q, b_k, b_v)


def _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the inputs are batches."""
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError(f"'query' must have 2 dimensions, or 3 if it is a batch; it has {rank}")
    batched = rank == 3
    kind = "a batch (3 dimensions)" if batched else "no batch (2 dimensions)"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(f"'query' is {kind}, so 'key' and 'value' must have {rank} dimensions; "
                             f"they have {key.dim()} and {value.dim()}")
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(f"'query' is {kind}, so 'key_padding_mask' must be None or have {rank - 1} "
                             f"dimensions; it has {key_padding_mask.dim()}")
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError("'attn_mask' must be None or have 2 or 3 dimensions; "
                                 f"it has {attn_mask.dim()}")
        if not batched and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(f"'attn_mask' must be of shape {expected}, got {attn_mask.shape}")
    return batched


def _merged_mask(attn_mask, key_padding_mask, batch, num_heads, source):
    """Both masks as one to add, of (batch * num_heads, 1 or target, source)."""
    if key_padding_mask is None:
        return attn_mask
    if tuple(key_padding_mask.shape) != (batch, source):
        raise AssertionError(f"'key_padding_mask' must be of shape {(batch, source)}, "
                             f"got {key_padding_mask.shape}")
    padding = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
    padding = padding.reshape(batch * num_heads, 1, source)
    return padding if attn_mask is None else attn_mask + padding


def multi_head_attention_forward(
        query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
        add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None,
        need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None,
        k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True,
        is_causal=False):
    """What nn.MultiheadAttention computes, on (length, batch, width) or (length, width).

    Returns the output and, if need_weights, the weights of each target by source (their mean over the heads
    if average_attn_weights).
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    target, batch, width = query.shape
    source = key.shape[0]
    if embed_dim_to_check != width:
        raise AssertionError(f"'query' must be {embed_dim_to_check} wide (embed_dim), got {width}")
    if width % num_heads:
        raise AssertionError(f"'num_heads' ({num_heads}) must divide the width embed_dim ({width})")
    if use_separate_proj_weight and key.shape[:2] != value.shape[:2]:
        raise AssertionError("'key' and 'value' must have one length and batch size, "
                             f"got {key.shape[:2]} and {value.shape[:2]}")
    if not use_separate_proj_weight and key.shape != value.shape:
        raise AssertionError(f"'key' and 'value' must have one shape, got {key.shape} and {value.shape}")
    if is_causal and attn_mask is None:
        raise RuntimeError("'is_causal' is a hint about 'attn_mask': give the mask too.")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the attention operator makes this mask itself
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        is_causal = False if key_padding_mask is not None else is_causal
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask", None, "", query.dtype, False)

    if use_separate_proj_weight:
        b_q, b_k, b_v = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = _in_projection(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight,
                                 b_q, b_k, b_v)
    else:
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)

    if attn_mask is not None:
        if attn_mask.dim() == 2:
            if tuple(attn_mask.shape) != (target, source):
                raise RuntimeError(f"'attn_mask' must be of shape {(target, source)} if it has 2 dimensions, "
                                   f"got {attn_mask.shape}.")
            attn_mask = attn_mask.unsqueeze(0)
        elif tuple(attn_mask.shape) != (batch * num_heads, target, source):
            raise RuntimeError("'attn_mask' must be of shape "
                               f"{(batch * num_heads, target, source)} if it has 3 dimensions, "
                               f"got {attn_mask.shape}.")

    def one_more(mask):
        return None if mask is None else fl.pad(mask, [0, 1])

    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("'static_k' and 'static_v' do not go with 'bias_k' and 'bias_v'")
        k, v = fl.cat([k, bias_k.expand(1, batch, -1)]), fl.cat([v, bias_v.expand(1, batch, -1)])
        attn_mask, key_padding_mask = one_more(attn_mask), one_more(key_padding_mask)

    heads = width // num_heads

    def by_head(x):
        return x.reshape(x.shape[0], batch * num_heads, heads).transpose(0, 1)

    q = by_head(q)
    k = by_head(k) if static_k is None else static_k
    v = by_head(v) if static_v is None else static_v
    if add_zero_attn:
        k = fl.cat([k, k.new_zeros((batch * num_heads, 1, heads))], dim=1)
        v = fl.cat([v, v.new_zeros((batch * num_heads, 1, heads))], dim=1)
        attn_mask, key_padding_mask = one_more(attn_mask), one_more(key_padding_mask)
    source = k.size(1)
    attn_mask = _merged_mask(attn_mask, key_padding_mask, batch, num_heads, source)
    dropout_p = dropout_p if training else 0.0

    if need_weights:
        q = q * math.sqrt(1.0 / q.size(-1))
        keys = k.transpose(-2, -1)
        scores = fl.bmm(q, keys) if attn_mask is None else fl.baddbmm(attn_mask, q, keys)
        weights = scores.softmax(-1)
        if dropout_p > 0.0:
            weights = fl.dropout(weights, dropout_p, True)
        output = fl.bmm(weights, v)
    else:
        if attn_mask is not None:
            attn_mask = (attn_mask.unsqueeze(0) if attn_mask.size(0) == 1 and attn_mask.dim() == 3
                         else attn_mask.view(batch, num_heads, -1, source))
        shape = (batch, num_heads, -1, heads)
        output = fl.scaled_dot_product_attention(q.view(shape), k.view(batch, num_heads, source, heads),
                                                 v.view(batch, num_heads, source, heads), attn_mask,
                                                 dropout_p, is_causal)
        output = output.reshape(batch * num_heads, target, heads)
    output = fl.linear(output.transpose(0, 1).reshape(target * batch, width), out_proj_weight, out_proj_bias)
    output = output.view(target, batch, output.size(1))
    if not batched:
        output = output.squeeze(1)
    if not need_weights:
        return output, None
    weights = weights.view(batch, num_heads, target, source)
    weights = weights.mean(dim=1) if average_attn_weights else weights
    return output, weights if batched else weights.squeeze(0)
