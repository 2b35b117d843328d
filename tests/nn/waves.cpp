#include "waves.h"

#include <algorithm>
#include <cmath>

#include "environment.h"

namespace fl::testing {

Tensor wave(IntList sizes, float step, float shift) {
  const Tensor t = ramp(sizes, step, shift);
  const int64_t count = t.numel().expect_int();
  std::transform(t.data_as<float>(), t.data_as<float>() + count, t.data_as<float>(),
                 [](float v) { return std::sin(v); });
  return t;
}

void fill_with_waves(nn::Module& module) {
  float shift = 0;
  for (const Tensor& p : module.parameters()) {
    const Tensor values = wave(IntList(p.sizes()), 0.7f, shift);
    std::copy_n(values.data_as<float>(), p.numel().expect_int(), p.data_as<float>());
    shift += 0.3f;
  }
}

}  // namespace fl::testing
