// Pooling over the last two dimensions.
#pragma once
#include <optional>

#include "flambeau/nn/module.h"
#include "flambeau/nn/pair.h"

namespace fl::nn {

struct MaxPool2dOptions {
  std::optional<Pair> stride{};  ///< the kernel's size
  Pair padding = 0, dilation = 1;
  bool ceil_mode = false;
};
class MaxPool2dImpl : public Layer {
 public:
  explicit MaxPool2dImpl(Pair kernel, MaxPool2dOptions options = {}) : kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  Pair kernel_;
  MaxPool2dOptions options_;
};
struct MaxPool2d : Holder<MaxPool2dImpl> {
  using Holder::Holder;
  explicit MaxPool2d(Pair kernel, MaxPool2dOptions options = {})
      : Holder(std::make_shared<MaxPool2dImpl>(kernel, options)) {}
};

struct AvgPool2dOptions {
  std::optional<Pair> stride{};  ///< the kernel's size
  Pair padding = 0;
  bool ceil_mode = false, count_include_pad = true;
  std::optional<int64_t> divisor_override{};
};
class AvgPool2dImpl : public Layer {
 public:
  explicit AvgPool2dImpl(Pair kernel, AvgPool2dOptions options = {}) : kernel_(kernel), options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  Pair kernel_;
  AvgPool2dOptions options_;
};
struct AvgPool2d : Holder<AvgPool2dImpl> {
  using Holder::Holder;
  explicit AvgPool2d(Pair kernel, AvgPool2dOptions options = {})
      : Holder(std::make_shared<AvgPool2dImpl>(kernel, options)) {}
};

/// Windows of the size that gives `output` height and width.
class AdaptiveAvgPool2dImpl : public Layer {
 public:
  explicit AdaptiveAvgPool2dImpl(Pair output) : output_(output) {}
  Tensor forward(const Tensor& x) override;

 private:
  Pair output_;
};
struct AdaptiveAvgPool2d : Holder<AdaptiveAvgPool2dImpl> {
  using Holder::Holder;
  explicit AdaptiveAvgPool2d(Pair output) : Holder(std::make_shared<AdaptiveAvgPool2dImpl>(output)) {}
};

}  // namespace fl::nn
