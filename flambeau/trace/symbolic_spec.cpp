#include "flambeau/trace/symbolic_spec.h"

#include <algorithm>
#include <numeric>

namespace fl::trace {

namespace {

/// The example in the place of a size of 1 that is to vary: unlike the sizes that programs have.
constexpr int64_t kStandsForOne = 1009;

}  // namespace

TensorSpec symbolic_spec(sym::ShapeEnv& env, const TensorSpec& example, const std::vector<bool>& dynamic,
                         int64_t lower) {
  TensorSpec s = example;
  const int n = s.dim();
  bool any = false;
  for (int d = 0; d < n; ++d) {
    const int64_t size = example.sizes[d].expect_int();
    if (!dynamic[d] || size < lower) continue;
    s.sizes[d] = SymInt(env.create_symbol(lower == 1 && size == 1 ? kStandsForOne : size, lower));
    any = true;
  }
  if (!any) return s;
  if (lower == 1) {
    s.strides = contiguous_strides(s.sizes);
    return s;
  }
  // From the smallest stride up; among equal strides from the last dimension, which a contiguous tensor has
  // innermost. Each stride is a product of a stride and a size found before, where the numbers agree.
  std::vector<int> order(static_cast<size_t>(n));
  std::iota(order.rbegin(), order.rend(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return example.strides[a].expect_int() < example.strides[b].expect_int();
  });
  std::vector<int> known;
  for (int d : order) {
    const int64_t stride = example.strides[d].expect_int();
    bool found = stride <= 1;
    for (auto it = known.rbegin(); it != known.rend() && !found; ++it) {
      const int64_t product =
          example.strides[*it].expect_int() * std::max<int64_t>(example.sizes[*it].expect_int(), 1);
      if (product != stride) continue;
      s.strides[d] = s.strides[*it] * max(s.sizes[*it], 1);
      found = true;
    }
    if (!found) s.strides[d] = SymInt(env.create_symbol(stride));
    known.push_back(d);
  }
  return s;
}

}  // namespace fl::trace
