// Attention.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
    "dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor">
    scaled_dot_product_attention;

}  // namespace fl
