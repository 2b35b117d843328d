#include "flambeau/nn/scheduler.h"

#include <cmath>
#include <numbers>

namespace fl::optim {

Scheduler::Scheduler(Optimizer& optimizer, Rule rule) : optimizer_(optimizer), rule_(std::move(rule)) {
  for (size_t g = 0; g < optimizer.group_count(); ++g) base_.push_back(optimizer.learning_rate(g));
  set_rates();
}

void Scheduler::step() {
  ++epoch_;
  set_rates();
}

void Scheduler::set_rates() {
  for (size_t g = 0; g < base_.size(); ++g) optimizer_.set_learning_rate(rule_(base_[g], epoch_), g);
}

static int64_t positive(int64_t value, const char* name) {
  FL_CHECK(value > 0, ValueError, "expected a {} above 0, got {}", name, value);
  return value;
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : Scheduler(optimizer, [every = positive(step_size, "step_size"), gamma](double base, int64_t epoch) {
        return base * std::pow(gamma, static_cast<double>(epoch / every));
      }) {}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : Scheduler(optimizer, [length = positive(t_max, "t_max"), eta_min](double base, int64_t epoch) {
        const double turn = std::numbers::pi * static_cast<double>(epoch) / static_cast<double>(length);
        return eta_min + (base - eta_min) * (1 + std::cos(turn)) / 2;
      }) {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor)
    : Scheduler(optimizer,
                [factor = std::move(factor)](double base, int64_t epoch) { return base * factor(epoch); }) {}

}  // namespace fl::optim
