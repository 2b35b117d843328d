// Activations without parameters, as layers.
#pragma once
#include "flambeau/nn/module.h"

namespace fl::nn {

#define FL_ACTIVATION(Name)                            \
  class Name##Impl : public Layer {                    \
   public:                                             \
    Tensor forward(const Tensor& x) override;          \
  };                                                   \
  struct Name : Holder<Name##Impl> {                   \
    using Holder::Holder;                              \
    Name() : Holder(std::make_shared<Name##Impl>()) {} \
  };
FL_ACTIVATION(ReLU)
FL_ACTIVATION(Sigmoid)
FL_ACTIVATION(Tanh)
FL_ACTIVATION(SiLU)
FL_ACTIVATION(ELU)
FL_ACTIVATION(SELU)
FL_ACTIVATION(Mish)
FL_ACTIVATION(Softplus)
FL_ACTIVATION(Hardswish)
#undef FL_ACTIVATION

/// x times the normal distribution function of x; `approximate` is "none" (erf) or "tanh".
class GELUImpl : public Layer {
 public:
  explicit GELUImpl(std::string approximate = "none") : approximate_(std::move(approximate)) {}
  Tensor forward(const Tensor& x) override;

 private:
  std::string approximate_;
};
struct GELU : Holder<GELUImpl> {
  using Holder::Holder;
  explicit GELU(std::string approximate = "none") : Holder(std::make_shared<GELUImpl>(approximate)) {}
};

class LeakyReLUImpl : public Layer {
 public:
  explicit LeakyReLUImpl(double negative_slope = 0.01) : slope_(negative_slope) {}
  Tensor forward(const Tensor& x) override;

 private:
  double slope_;
};
struct LeakyReLU : Holder<LeakyReLUImpl> {
  using Holder::Holder;
  explicit LeakyReLU(double negative_slope = 0.01)
      : Holder(std::make_shared<LeakyReLUImpl>(negative_slope)) {}
};

class SoftmaxImpl : public Layer {
 public:
  explicit SoftmaxImpl(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& x) override;

 private:
  int64_t dim_;
};
struct Softmax : Holder<SoftmaxImpl> {
  using Holder::Holder;
  explicit Softmax(int64_t dim) : Holder(std::make_shared<SoftmaxImpl>(dim)) {}
};

}  // namespace fl::nn
