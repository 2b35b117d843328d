// What the tests of autograd share.
#pragma once
#include <gtest/gtest.h>

#include "flambeau/autograd/autograd.h"
#include "flambeau/ops/functions.h"
#include "set_up.h"

namespace fl::testing {

inline Tensor constant(const std::vector<float>& v, IntList sizes) { return tensor_from(v, sizes); }
inline Tensor constant(const std::vector<float>& v) {
  return tensor_from(v, {static_cast<int64_t>(v.size())});
}
inline Tensor leaf(const std::vector<float>& v) { return constant(v).set_requires_grad(true); }
inline Tensor leaf(const std::vector<float>& v, IntList sizes) {
  return constant(v, sizes).set_requires_grad(true);
}
inline Tensor ones(const Tensor& t) {
  return constant(std::vector<float>(t.numel().expect_int(), 1.0f), t.sizes());
}
inline std::vector<float> values(const Tensor& t) {
  return t.defined() ? t.to_vector<float>() : std::vector<float>();
}
using Floats = std::vector<float>;
inline BackwardOptions keep_graph() { return {.retain_graph = true}; }
inline BackwardOptions create_graph() { return {.create_graph = true}; }

/// The message of the error that f raises; "no error" if it raises none.
template <class E = RuntimeError, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.message();
  }
  return "no error";
}

class AutogradTest : public ::testing::Test {
 protected:
  void SetUp() override { set_up(); }
};

}  // namespace fl::testing
