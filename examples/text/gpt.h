// A small transformer that predicts the next token of a text (Radford et al., 2019).
#pragma once
#include "flambeau/nn/nn.h"

namespace text {

struct GptOptions {
  int64_t vocabulary = 0, context = 128, width = 128, heads = 4, layers = 4;
};

/// Self-attention and a two-layer network, each on the normalised input and added to it.
class Block : public fl::nn::Layer {
 public:
  Block(int64_t width, int64_t heads);
  fl::Tensor forward(const fl::Tensor& x) override;

 private:
  fl::Tensor attend(const fl::Tensor& x);
  int64_t heads_;
  fl::nn::LayerNorm norm_attention, norm_mlp;
  fl::nn::Linear qkv, projection, expand, contract;
};

/// Tokens (batch, length), length at most the context -> logits (batch, length, vocabulary).
class Gpt : public fl::nn::Layer {
 public:
  explicit Gpt(const GptOptions& options);
  fl::Tensor forward(const fl::Tensor& tokens) override;

 private:
  fl::nn::Embedding tokens_, positions_;
  fl::nn::Sequential blocks_;
  fl::nn::LayerNorm norm_;
  fl::nn::Linear head_;
};

}  // namespace text
