// A residual network for 8x8 images of digits.
#pragma once
#include <memory>

#include "flambeau/nn/module.h"

namespace digits {

/// Three stages of two blocks each, 16, 32 and 64 channels; images (batch, 1, 8, 8) -> logits (batch, 10).
class ResNet : public fl::nn::Layer {
 public:
  ResNet();
  fl::Tensor forward(const fl::Tensor& x) override;

 private:
  std::shared_ptr<fl::nn::Layer> stem_, stages_, head_;
};

}  // namespace digits
