// What every test of nn needs: autograd, and a backend that runs operators.
#pragma once
#include <gtest/gtest.h>

#include "flambeau/autograd/autograd.h"
#include "flambeau/nn/module.h"
#include "flambeau/tensor/generator.h"

namespace fl::testing {

struct NnTest : ::testing::Test {
  NnTest();  ///< Seeds the default generator with 0.
};

inline Tensor f32(const std::vector<float>& values, IntList sizes) { return tensor_from(values, sizes); }
inline Tensor i64(const std::vector<int64_t>& values, IntList sizes) { return tensor_from(values, sizes); }
/// The tensor's values within this relative or absolute distance of the expected ones.
void expect_near(const Tensor& t, const std::vector<double>& expected, double tolerance = 1e-5);
/// 0, step, 2 step, ... in row-major order, less shift.
Tensor ramp(IntList sizes, float step, float shift = 0);
/// The message of what f raises; empty if nothing.
template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.message();
  }
  return "";
}

}  // namespace fl::testing
