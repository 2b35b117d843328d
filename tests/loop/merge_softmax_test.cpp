// Long rows: maximum and sum of exponentials in one walk.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "flambeau/loop/interpret.h"
#include "flambeau/loop/merge_softmax.h"

namespace fl::loop {
namespace {

const char* kStages = R"(kernel rows(x: f32 in, y: f32 out, z: f32 out) sizes(s0, s1) vector inner
for i0 < s0
  stage for r0 < s1
    %0 = load f32 x[i0*s1 + r0]
    %1 = constant f32 0.5
    %2 = mul f32 %0, %1
    %3 = reduce max %2
  stage for r1 < s1
    %4 = load f32 x[i0*s1 + r1]
    %5 = constant f32 0.5
    %6 = mul f32 %4, %5
    %7 = constant f32 1
    %8 = mul f32 %7, %3
    %9 = sub f32 %6, %8
    %10 = exp f32 %9
    %11 = reduce sum %{}
    %12 = reduce sum %6
  stage
    %13 = log f32 %11
    %14 = add f32 %13, %3
    store y[i0] = %14
    store z[i0] = %12
)";

std::string text(std::string_view summed) {
  std::string out = kStages;
  return out.replace(out.find("{}"), 2, summed);
}

TEST(MergeSoftmax, TakesTheSumBesideTheMaximum) {
  Kernel k = parse_kernel(text("10"));
  const Kernel before = k;
  merge_softmax(k);
  EXPECT_NE(k.str().find("reduce online_softmax"), std::string::npos) << k.str();
  EXPECT_EQ(k.str().find("reduce max"), std::string::npos) << k.str();
  EXPECT_EQ(k.str().find("exp"), k.str().find("exp_")) << "an exponential is left over\n" << k.str();
  const std::vector<int64_t> sizes{3, 100};
  std::vector<float> x(300), y(3), z(3), expected_y(3), expected_z(3);
  for (size_t n = 0; n < x.size(); ++n) x[n] = std::sin(static_cast<float>(n)) * 20;
  interpret(before, std::vector<void*>{x.data(), expected_y.data(), expected_z.data()}, sizes);
  interpret(k, std::vector<void*>{x.data(), y.data(), z.data()}, sizes);
  for (size_t n = 0; n < 3; ++n) EXPECT_NEAR(y[n], expected_y[n], 1e-5f);
  EXPECT_EQ(z, expected_z);
}

TEST(MergeSoftmax, LeavesOtherSums) {
  Kernel k = parse_kernel(text("9"));
  merge_softmax(k);
  EXPECT_EQ(k.str().find("online_softmax"), std::string::npos) << k.str();
}

}  // namespace
}  // namespace fl::loop
