#include <algorithm>

#include "flambeau/nn/optimizers.h"
#include "flambeau/ops/functions.h"

namespace fl::optim {

namespace {

enum State : size_t { ExpAvg, ExpAvgSq, MaxExpAvgSq };

/// What a step needs of the number of steps: 0-dim tensors of float64.
struct Correction {
  Tensor steps;
  Tensor step_size;  ///< -lr / (1 - beta1^steps)
  Tensor root;       ///< sqrt(1 - beta2^steps)
};

Correction correction(const Tensor& steps, const Tensor& rate, const AdamOptions& o) {
  return {steps, div(rate, sub(pow(scalar_tensor(o.beta1, DType::Float64), steps), 1)),
          sqrt(rsub(pow(scalar_tensor(o.beta2, DType::Float64), steps), 1))};
}

}  // namespace

Adam::Adam(const Tensors& parameters, AdamOptions options) : Adam() { add_group(parameters, options); }

void Adam::check(const AdamOptions& o) const {
  FL_CHECK(o.eps >= 0, ValueError, "invalid epsilon value: {}", o.eps);
  FL_CHECK(o.beta1 >= 0 && o.beta1 < 1, ValueError, "invalid beta parameter at index 0: {}", o.beta1);
  FL_CHECK(o.beta2 >= 0 && o.beta2 < 1, ValueError, "invalid beta parameter at index 1: {}", o.beta2);
  FL_CHECK(o.weight_decay >= 0, ValueError, "invalid weight_decay value: {}", o.weight_decay);
}

void Adam::update(size_t group, const std::vector<Update>& updates) {
  const AdamOptions& o = options(group);
  std::vector<Correction> corrections;
  const auto correction_for = [&](const Tensor& steps) {
    const auto known =
        std::ranges::find_if(corrections, [&](const Correction& c) { return c.steps.is_same(steps); });
    if (known != corrections.end()) return *known;
    return corrections.emplace_back(correction(steps, rate(group), o));
  };
  const bool decoupled = decouples_weight_decay() && o.weight_decay != 0;
  const Tensor keep = decoupled ? rsub(mul(rate(group), o.weight_decay), 1) : Tensor();
  for (const Update& u : updates) {
    const Correction c = correction_for(steps(u));
    Tensor d = o.maximize ? neg(u.gradient) : u.gradient;
    if (decoupled)
      mul.in_place(u.parameter, keep);
    else if (o.weight_decay != 0)
      d = add(d, u.parameter, o.weight_decay);
    const Tensor &average = state(u, ExpAvg), &square_average = state(u, ExpAvgSq);
    lerp.in_place(average, d, 1 - o.beta1);
    mul.in_place(square_average, o.beta2);
    addcmul.in_place(square_average, d, d, 1 - o.beta2);
    if (o.amsgrad) copy.in_place(state(u, MaxExpAvgSq), maximum(state(u, MaxExpAvgSq), square_average));
    const Tensor& scale = o.amsgrad ? state(u, MaxExpAvgSq) : square_average;
    const Tensor denominator = add(div(sqrt(scale), c.root), o.eps);
    add.in_place(u.parameter, div(mul(average, c.step_size), denominator));
  }
}

static AdamOptions adam_options(const AdamWOptions& o) {
  return {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad, o.maximize};
}

AdamW::AdamW(const Tensors& parameters, AdamWOptions options) {
  Adam::add_group(parameters, adam_options(options));
}

void AdamW::add_group(const Tensors& parameters, const AdamWOptions& options) {
  Adam::add_group(parameters, adam_options(options));
}

}  // namespace fl::optim
