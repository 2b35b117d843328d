// A residual network for images of 8x8 pixels (He et al., "Deep residual learning", 2016).
#pragma once
#include "flambeau/nn/nn.h"

namespace digits {

/// Two 3x3 convolutions beside a shortcut; (batch, in, h, w) -> (batch, out, h / stride, w / stride).
class Block : public fl::nn::Layer {
 public:
  Block(int64_t in, int64_t out, int64_t stride);
  fl::Tensor forward(const fl::Tensor& x) override;

 private:
  fl::nn::Conv2d conv1, conv2;
  fl::nn::BatchNorm2d norm1, norm2;
  std::shared_ptr<fl::nn::Layer> shortcut;
};

/// (batch, 1, 8, 8) -> logits of 10 digits. Three stages of 16, 32 and 64 channels with two blocks each.
class ResNet : public fl::nn::Layer {
 public:
  ResNet();
  fl::Tensor forward(const fl::Tensor& images) override { return layers(images); }

 private:
  fl::nn::Sequential layers;
};

}  // namespace digits
