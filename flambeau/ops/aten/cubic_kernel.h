// Keys's kernel of cubic convolution (1981), which images are interpolated with.
#pragma once
#include "flambeau/ops/functions.h"

namespace fl {

/// At distance d, |d| < 1.
inline Tensor cubic_near(const Tensor& d, double a) {
  return add(mul(mul(sub(mul(d, a + 2), a + 3), d), d), 1);
}
/// At distance d, 1 <= |d| < 2.
inline Tensor cubic_far(const Tensor& d, double a) {
  return sub(mul(add(mul(sub(mul(d, a), 5 * a), d), 8 * a), d), 4 * a);
}
/// For a = -0.75, at the four pixels around a position, from its distance to the second.
inline std::vector<Tensor> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  return {cubic_far(add(t, 1), a), cubic_near(t, a), cubic_near(sub(1, t), a), cubic_far(sub(2, t), a)};
}

}  // namespace fl
