// The optimisers, with PyTorch's options and defaults.
#pragma once
#include "flambeau/nn/optimizer.h"

namespace fl::optim {

struct SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
class SGD final : public OptimizerWith<SGDOptions> {
 public:
  explicit SGD(const Tensors& parameters, SGDOptions options = {});

 private:
  void check(const SGDOptions& options) const override;
  void update(size_t group, const std::vector<Update>& updates) override;
};

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
};
/// Kingma and Ba, "Adam: a method for stochastic optimization", 2015.
class Adam : public OptimizerWith<AdamOptions> {
 public:
  explicit Adam(const Tensors& parameters, AdamOptions options = {});

 protected:
  Adam() : OptimizerWith({"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {}
  /// Weight decay acts on the parameter and not through the gradient.
  virtual bool decouples_weight_decay() const { return false; }

 private:
  void check(const AdamOptions& options) const override;
  void update(size_t group, const std::vector<Update>& updates) override;
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  bool amsgrad = false, maximize = false;
};
/// Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.
class AdamW final : public Adam {
 public:
  explicit AdamW(const Tensors& parameters, AdamWOptions options = {});
  void add_group(const Tensors& parameters, const AdamWOptions& options);

 private:
  bool decouples_weight_decay() const override { return true; }
};

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
class RMSprop final : public OptimizerWith<RMSpropOptions> {
 public:
  explicit RMSprop(const Tensors& parameters, RMSpropOptions options = {});

 private:
  void check(const RMSpropOptions& options) const override;
  void update(size_t group, const std::vector<Update>& updates) override;
};

}  // namespace fl::optim
