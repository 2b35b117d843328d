// Convolutions (cross-correlations, as everywhere in this field).
#pragma once
#include "flambeau/nn/module.h"
#include "flambeau/nn/pair.h"

namespace fl::nn {

struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
};
/// x (batch, in, length); weight (out, in / groups, kernel), bias (out).
class Conv1dImpl : public Layer {
 public:
  Conv1dImpl(int64_t in, int64_t out, int64_t kernel, Conv1dOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;

 private:
  Conv1dOptions options_;
};
struct Conv1d : Holder<Conv1dImpl> {
  using Holder::Holder;
  Conv1d(int64_t in, int64_t out, int64_t kernel, Conv1dOptions options = {})
      : Holder(std::make_shared<Conv1dImpl>(in, out, kernel, options)) {}
};

struct Conv2dOptions {
  Pair stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
/// x (batch, in, height, width); weight (out, in / groups, kernel height, kernel width), bias (out).
class Conv2dImpl : public Layer {
 public:
  Conv2dImpl(int64_t in, int64_t out, Pair kernel, Conv2dOptions options = {});
  void reset_parameters();
  Tensor forward(const Tensor& x) override;
  Tensor weight, bias;

 private:
  Conv2dOptions options_;
};
struct Conv2d : Holder<Conv2dImpl> {
  using Holder::Holder;
  Conv2d(int64_t in, int64_t out, Pair kernel, Conv2dOptions options = {})
      : Holder(std::make_shared<Conv2dImpl>(in, out, kernel, options)) {}
};

}  // namespace fl::nn
