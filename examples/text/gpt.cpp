#include "gpt.h"

#include "flambeau/ops/functions.h"

namespace text {

using namespace fl;

Block::Block(int64_t width, int64_t heads)
    : heads_(heads),
      norm_attention(width),
      norm_mlp(width),
      qkv(width, 3 * width),
      projection(width, width),
      expand(width, 4 * width),
      contract(4 * width, width) {
  register_module("norm_attention", norm_attention);
  register_module("qkv", qkv);
  register_module("projection", projection);
  register_module("norm_mlp", norm_mlp);
  register_module("expand", expand);
  register_module("contract", contract);
}

Tensor Block::attend(const Tensor& x) {
  const SymInt batch = x.size(0), length = x.size(1), width = x.size(2);
  // (batch, length, 3, heads, width / heads) -> three of (batch, heads, length, width / heads)
  const Tensor split = view(qkv(x), {batch, length, 3, heads_, width / heads_});
  const Tensors parts = unbind(permute(split, {2, 0, 3, 1, 4}));
  const Tensor attended = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
  return projection(reshape(transpose(attended, 1, 2), {batch, length, width}));
}

Tensor Block::forward(const Tensor& x) {
  const Tensor y = add(x, attend(norm_attention(x)));
  return add(y, contract(gelu(expand(norm_mlp(y)), "tanh")));
}

Gpt::Gpt(const GptOptions& o)
    : tokens_(o.vocabulary, o.width),
      positions_(o.context, o.width),
      norm_(o.width),
      head_(o.width, o.vocabulary, {.bias = false}) {
  register_module("tokens", tokens_);
  register_module("positions", positions_);
  register_module("blocks", blocks_);
  register_module("norm", norm_);
  register_module("head", head_);
  for (int64_t i = 0; i < o.layers; ++i) blocks_->push_back(std::make_shared<Block>(o.width, o.heads));
  // Smaller than the layers' defaults, as usual for language models.
  nn::init::normal_(tokens_->weight, 0, 0.02);
  nn::init::normal_(positions_->weight, 0, 0.02);
}

Tensor Gpt::forward(const Tensor& tokens) {
  const Tensor positions = arange_end(tokens.size(1), DType::Int64);
  return head_(norm_(blocks_(add(tokens_(tokens), positions_(positions)))));
}

}  // namespace text
