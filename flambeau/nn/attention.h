// Multi-head attention and the transformer's encoder layer (Vaswani et al., "Attention is all you need",
// 2017).
#pragma once
#include "flambeau/nn/linear.h"
#include "flambeau/nn/normalization.h"

namespace fl::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;
  bool bias = true;
  bool batch_first = false;  ///< (batch, length, width) in place of (length, batch, width)
};
struct AttentionMask {
  Tensor mask{};  ///< (target, source) or (batch * heads, target, source): true hides, a float is added
  bool is_causal = false;
};
class MultiheadAttentionImpl : public Module {
 public:
  MultiheadAttentionImpl(int64_t width, int64_t heads, MultiheadAttentionOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMask& mask = {});
  Tensor in_proj_weight, in_proj_bias;  ///< (3 width, width), (3 width): query, key, value
  Linear out_proj;

 private:
  Tensor split_heads(const Tensor& x) const;
  int64_t width_, heads_;
  MultiheadAttentionOptions options_;
};
struct MultiheadAttention : Holder<MultiheadAttentionImpl> {
  using Holder::Holder;
  MultiheadAttention(int64_t width, int64_t heads, MultiheadAttentionOptions options = {})
      : Holder(std::make_shared<MultiheadAttentionImpl>(width, heads, options)) {}
};

struct TransformerEncoderLayerOptions {
  int64_t feedforward = 2048;
  double dropout = 0.1;
  bool gelu = false;  ///< in place of relu
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false;
};
class TransformerEncoderLayerImpl : public Layer {
 public:
  TransformerEncoderLayerImpl(int64_t width, int64_t heads, TransformerEncoderLayerOptions options = {});
  Tensor forward(const Tensor& x) override { return forward(x, AttentionMask{}); }
  Tensor forward(const Tensor& x, const AttentionMask& mask);
  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;
  Dropout dropout, dropout1, dropout2;

 private:
  Tensor attend(const Tensor& x, const AttentionMask& mask);
  Tensor feed_forward(const Tensor& x);
  TransformerEncoderLayerOptions options_;
};
struct TransformerEncoderLayer : Holder<TransformerEncoderLayerImpl> {
  using Holder::Holder;
  TransformerEncoderLayer(int64_t width, int64_t heads, TransformerEncoderLayerOptions options = {})
      : Holder(std::make_shared<TransformerEncoderLayerImpl>(width, heads, options)) {}
};

}  // namespace fl::nn
