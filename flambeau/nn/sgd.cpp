#include "flambeau/nn/optimizers.h"
#include "flambeau/ops/functions.h"

namespace fl::optim {

SGD::SGD(const Tensors& parameters, SGDOptions options) : OptimizerWith({"momentum_buffer"}) {
  add_group(parameters, options);
}

void SGD::check(const SGDOptions& o) const {
  FL_CHECK(o.momentum >= 0, ValueError, "invalid momentum value: {}", o.momentum);
  FL_CHECK(o.weight_decay >= 0, ValueError, "invalid weight_decay value: {}", o.weight_decay);
  FL_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0), ValueError,
           "Nesterov momentum requires a momentum and zero dampening, got momentum {} and dampening {}",
           o.momentum, o.dampening);
}

void SGD::update(size_t group, const std::vector<Update>& updates) {
  const SGDOptions& o = options(group);
  const Tensor step_size = neg(rate(group));
  for (const Update& u : updates) {
    Tensor d = o.maximize ? neg(u.gradient) : u.gradient;
    if (o.weight_decay != 0) d = add(d, u.parameter, o.weight_decay);
    if (o.momentum != 0) {
      const Tensor& buffer = state(u, 0);
      mul.in_place(buffer, o.momentum);
      if (o.dampening == 0) {
        add.in_place(buffer, d);
      } else {
        // The first gradient enters whole.
        const Tensor share = where(eq(steps(u), 1), 1.0, 1 - o.dampening);
        add.in_place(buffer, mul(d, share));
      }
      d = o.nesterov ? add(d, buffer, o.momentum) : buffer;
    }
    add.in_place(u.parameter, mul(d, step_size));
  }
}

}  // namespace fl::optim
