// Convolutions as layers.
#pragma once
#include "flambeau/nn/module.h"

namespace fl::nn {

struct ConvOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
};
/// x (batch, in, spatial...) -> (batch, out, ...); weight (out, in / groups, kernel...), bias (out).
class ConvImpl : public Layer {
 public:
  ConvImpl(int spatial, int64_t in, int64_t out, int64_t kernel, ConvOptions options);
  void reset_parameters();
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;

 private:
  int spatial_;
  ConvOptions options_;
};
struct Conv1d : Holder<ConvImpl> {
  using Holder::Holder;
  Conv1d(int64_t in, int64_t out, int64_t kernel, ConvOptions options = {})
      : Holder(std::make_shared<ConvImpl>(1, in, out, kernel, options)) {}
};
struct Conv2d : Holder<ConvImpl> {
  using Holder::Holder;
  Conv2d(int64_t in, int64_t out, int64_t kernel, ConvOptions options = {})
      : Holder(std::make_shared<ConvImpl>(2, in, out, kernel, options)) {}
};

}  // namespace fl::nn
