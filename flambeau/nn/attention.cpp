#include "flambeau/nn/attention.h"

#include "flambeau/nn/init.h"
#include "flambeau/ops/functions.h"

namespace fl::nn {

MultiheadAttentionImpl::MultiheadAttentionImpl(int64_t width, int64_t heads,
                                               MultiheadAttentionOptions options)
    : out_proj(width, width, {.bias = options.bias}), width_(width), heads_(heads), options_(options) {
  FL_CHECK(heads > 0 && width % heads == 0, ValueError,
           "embed_dim must be divisible by num_heads, got {} and {}", width, heads);
  in_proj_weight = register_parameter("in_proj_weight", empty_tensor({3 * width, width}, DType::Float32));
  in_proj_bias =
      register_parameter("in_proj_bias", options.bias ? empty_tensor({3 * width}, DType::Float32) : Tensor());
  register_module("out_proj", out_proj);
  reset_parameters();
}

void MultiheadAttentionImpl::reset_parameters() {
  init::xavier_uniform_(in_proj_weight);
  if (!in_proj_bias.defined()) return;
  init::zeros_(in_proj_bias);
  init::zeros_(out_proj->bias);
}

/// (batch, length, width) -> (batch, heads, length, width / heads)
Tensor MultiheadAttentionImpl::split_heads(const Tensor& x) const {
  return transpose(view(x, {x.size(0), x.size(1), heads_, width_ / heads_}), 1, 2);
}

Tensor MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const AttentionMask& mask) {
  FL_CHECK(query.dim() == 3 && key.dim() == 3 && value.dim() == 3, ValueError,
           "expected query, key and value of 3 dimensions, got {}, {} and {}", query.dim(), key.dim(),
           value.dim());
  const bool self = query.is_same(key) && key.is_same(value);
  const auto batch_first = [&](const Tensor& x) { return options_.batch_first ? x : transpose(x, 0, 1); };
  Tensors projected;
  if (self) {
    projected = chunk(linear(batch_first(query), in_proj_weight, in_proj_bias), 3, -1);
  } else {
    const Tensors weights = chunk(in_proj_weight, 3);
    const Tensors biases = in_proj_bias.defined() ? chunk(in_proj_bias, 3) : Tensors(3);
    const Tensor* inputs[] = {&query, &key, &value};
    for (int i = 0; i < 3; ++i) projected.push_back(linear(batch_first(*inputs[i]), weights[i], biases[i]));
  }
  const Tensor q = split_heads(contiguous(projected[0])), k = split_heads(contiguous(projected[1])),
               v = split_heads(contiguous(projected[2]));
  Tensor hidden = mask.mask;
  if (hidden.defined()) {
    // scaled_dot_product_attention's masks say what is seen.
    if (hidden.dtype() == DType::Bool) hidden = logical_not(hidden);
    if (hidden.dim() == 3) hidden = unflatten(hidden, 0, {q.size(0), heads_});
  }
  const Tensor attended = scaled_dot_product_attention(
      q, k, v, hidden, is_training() ? options_.dropout : 0.0, mask.is_causal && !hidden.defined());
  const Tensor joined = flatten(transpose(attended, 1, 2), 2, 3);
  const Tensor result = out_proj(joined);
  return options_.batch_first ? result : transpose(result, 0, 1);
}

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(int64_t width, int64_t heads,
                                                         TransformerEncoderLayerOptions o)
    : self_attn(width, heads, MultiheadAttentionOptions{.dropout = o.dropout, .batch_first = o.batch_first}),
      linear1(width, o.feedforward),
      linear2(o.feedforward, width),
      norm1(width, LayerNormOptions{.eps = o.layer_norm_eps}),
      norm2(width, LayerNormOptions{.eps = o.layer_norm_eps}),
      dropout(o.dropout),
      dropout1(o.dropout),
      dropout2(o.dropout),
      options_(o) {
  register_module("self_attn", self_attn);
  register_module("linear1", linear1);
  register_module("dropout", dropout);
  register_module("linear2", linear2);
  register_module("norm1", norm1);
  register_module("norm2", norm2);
  register_module("dropout1", dropout1);
  register_module("dropout2", dropout2);
}

Tensor TransformerEncoderLayerImpl::attend(const Tensor& x, const AttentionMask& mask) {
  return dropout1(self_attn(x, x, x, mask));
}

Tensor TransformerEncoderLayerImpl::feed_forward(const Tensor& x) {
  const Tensor hidden = linear1(x);
  return dropout2(linear2(dropout(options_.gelu ? gelu(hidden) : relu(hidden))));
}

Tensor TransformerEncoderLayerImpl::forward(const Tensor& x, const AttentionMask& mask) {
  if (options_.norm_first) {
    const Tensor y = add(x, attend(norm1(x), mask));
    return add(y, feed_forward(norm2(y)));
  }
  const Tensor y = norm1(add(x, attend(x, mask)));
  return norm2(add(y, feed_forward(y)));
}

}  // namespace fl::nn
