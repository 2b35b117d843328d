#include "flambeau/nn/optimizers.h"
#include "flambeau/ops/functions.h"

namespace fl::optim {

namespace {
enum State : size_t { SquareAvg, MomentumBuffer, GradAvg };
}

RMSprop::RMSprop(const Tensors& parameters, RMSpropOptions options)
    : OptimizerWith({"square_avg", "momentum_buffer", "grad_avg"}) {
  add_group(parameters, options);
}

void RMSprop::check(const RMSpropOptions& o) const {
  FL_CHECK(o.alpha >= 0, ValueError, "invalid alpha value: {}", o.alpha);
  FL_CHECK(o.eps >= 0, ValueError, "invalid epsilon value: {}", o.eps);
  FL_CHECK(o.momentum >= 0, ValueError, "invalid momentum value: {}", o.momentum);
  FL_CHECK(o.weight_decay >= 0, ValueError, "invalid weight_decay value: {}", o.weight_decay);
}

void RMSprop::update(size_t group, const std::vector<Update>& updates) {
  const RMSpropOptions& o = options(group);
  const Tensor step_size = neg(rate(group));
  for (const Update& u : updates) {
    Tensor d = o.maximize ? neg(u.gradient) : u.gradient;
    if (o.weight_decay != 0) d = add(d, u.parameter, o.weight_decay);
    const Tensor& square_average = state(u, SquareAvg);
    mul.in_place(square_average, o.alpha);
    addcmul.in_place(square_average, d, d, 1 - o.alpha);
    Tensor scale = square_average;
    if (o.centered) {
      const Tensor& average = state(u, GradAvg);
      lerp.in_place(average, d, 1 - o.alpha);
      scale = addcmul(square_average, average, average, -1);
    }
    const Tensor denominator = add(sqrt(scale), o.eps);
    if (o.momentum > 0) {
      const Tensor& buffer = state(u, MomentumBuffer);
      mul.in_place(buffer, o.momentum);
      addcdiv.in_place(buffer, d, denominator);
      add.in_place(u.parameter, mul(buffer, step_size));
    } else {
      add.in_place(u.parameter, div(mul(d, step_size), denominator));
    }
  }
}

}  // namespace fl::optim
