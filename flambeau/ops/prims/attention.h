// Attention as a whole, for libraries that have it: `scaled_dot_product_attention` uses it where one does.
// Operands are (batch, head, token, element); the key's heads divide the query's, each serves a run of them.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor? seed, float dropout_p, bool "
    "is_causal, float scale) -> (Tensor output, Tensor logsumexp)">
    _attention;
inline constexpr Op<
    "_attention_backward(Tensor grad_output, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor? "
    "seed, Tensor output, Tensor logsumexp, float dropout_p, bool is_causal, float scale) -> (Tensor, "
    "Tensor, "
    "Tensor)">
    _attention_backward;

}  // namespace fl
