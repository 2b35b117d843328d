#include "gpt.h"

#include "flambeau/ops/functions.h"

namespace bench {

using namespace fl;

namespace {

constexpr int64_t kVocabulary = 8192, kContext = 256, kWidth = 256, kHeads = 4, kLayers = 4;

class Block : public nn::Layer {
 public:
  Block() {
    register_module("norm_attention", norm_attention_);
    register_module("qkv", qkv_);
    register_module("projection", projection_);
    register_module("norm_mlp", norm_mlp_);
    register_module("expand", expand_);
    register_module("contract", contract_);
  }
  Tensor forward(const Tensor& x) override {
    const SymInt batch = x.size(0), length = x.size(1);
    const Tensor split = view(qkv_(norm_attention_(x)), {batch, length, 3, kHeads, kWidth / kHeads});
    const Tensors parts = unbind(permute(split, {2, 0, 3, 1, 4}));
    const Tensor attended = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    const Tensor y = add(x, projection_(reshape(transpose(attended, 1, 2), {batch, length, kWidth})));
    return add(y, contract_(gelu(expand_(norm_mlp_(y)), "tanh")));
  }

 private:
  nn::LayerNorm norm_attention_{kWidth}, norm_mlp_{kWidth};
  nn::Linear qkv_{kWidth, 3 * kWidth}, projection_{kWidth, kWidth}, expand_{kWidth, 4 * kWidth},
      contract_{4 * kWidth, kWidth};
};

}  // namespace

Gpt::Gpt()
    : tokens_(kVocabulary, kWidth),
      positions_(kContext, kWidth),
      norm_(kWidth),
      head_(kWidth, kVocabulary, {.bias = false}) {
  register_module("tokens", tokens_);
  register_module("positions", positions_);
  register_module("blocks", blocks_);
  register_module("norm", norm_);
  register_module("head", head_);
  for (int i = 0; i < kLayers; ++i) blocks_->push_back(std::make_shared<Block>());
}

Tensor Gpt::forward(const Tensor& tokens, const Tensor& targets) {
  const Tensor positions = arange_end(tokens.size(1), DType::Int64);
  const Tensor logits = head_(norm_(blocks_(add(tokens_(tokens), positions_(positions)))));
  return nn::cross_entropy(flatten(logits, 0, 1), flatten(targets));
}

}  // namespace bench
