// The convolutional network of benchmarks/peer/models.py.
#pragma once
#include "flambeau/nn/nn.h"

namespace bench {

/// ResNet-18 for 1000 classes.
class ResNet18 : public fl::nn::Module {
 public:
  ResNet18();
  /// Images (batch, 3, height, width) and labels (batch) -> the mean cross entropy.
  fl::Tensor forward(const fl::Tensor& images, const fl::Tensor& labels);

 private:
  fl::nn::Sequential stem_, stages_;
  fl::nn::Linear classifier_{512, 1000};
};

}  // namespace bench
