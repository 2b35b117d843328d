// The transformer of benchmarks/peer/models.py.
#pragma once
#include "flambeau/nn/nn.h"

namespace bench {

/// 4 layers of width 256 with 4 heads, vocabulary 8192, 256 learnt positions.
class Gpt : public fl::nn::Module {
 public:
  Gpt();
  /// Tokens and targets (batch, length) -> the mean cross entropy.
  fl::Tensor forward(const fl::Tensor& tokens, const fl::Tensor& targets);

 private:
  fl::nn::Embedding tokens_, positions_;
  fl::nn::Sequential blocks_;
  fl::nn::LayerNorm norm_;
  fl::nn::Linear head_;
};

}  // namespace bench
