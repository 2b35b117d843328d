// Learning rates by epoch, and limits for gradients.
#pragma once
#include <functional>

#include "flambeau/nn/optimizer.h"

namespace fl::optim {

/// Sets every group's learning rate to rule(its rate at construction, epoch): at construction for epoch 0,
/// then one epoch further with each step(). The optimiser must outlive it.
class Scheduler {
 public:
  using Rule = std::function<double(double base, int64_t epoch)>;
  Scheduler(Optimizer& optimizer, Rule rule);
  void step();
  int64_t epoch() const { return epoch_; }

 private:
  void set_rates();
  Optimizer& optimizer_;
  Rule rule_;
  std::vector<double> base_;
  int64_t epoch_ = 0;
};

/// Times gamma every step_size epochs.
struct StepLR : Scheduler {
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);
};
/// Half a cosine from the base rate to eta_min in t_max epochs, and back.
struct CosineAnnealingLR : Scheduler {
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0);
};
/// The base rate times factor(epoch).
struct LambdaLR : Scheduler {
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t epoch)> factor);
};

/// Scales the gradients, in place, so that their norm as one vector is at most max_norm; returns the norm
/// before. norm_type may be infinity. Raises ValueError on a norm_type of 0 or less.
Tensor clip_grad_norm_(const Tensors& parameters, double max_norm, double norm_type = 2);
/// Clamps the gradients, in place, to [-limit, limit].
void clip_grad_value_(const Tensors& parameters, double limit);

}  // namespace fl::optim
