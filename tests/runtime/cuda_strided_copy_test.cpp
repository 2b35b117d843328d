#include "flambeau/runtime/cuda/strided_copy.h"

#include <gtest/gtest.h>

namespace fl::runtime::cuda {
namespace {

// The copy is the device's kernel of copy(): the CPU's shows that layouts and dtypes are handed on.
TEST(CudaStridedCopy, TransposesRepeatsAndConverts) {
  const std::vector<float> from{1, 2, 3, 4, 5, 6};
  std::vector<float> to(8, -1);
  copy_strided({}, {DType::Float32, {3, 2}, {2, 1}}, to.data() + 1, {DType::Float32, {3, 2}, {1, 3}},
               from.data());
  EXPECT_EQ(to, (std::vector<float>{-1, 1, 4, 2, 5, 3, 6, -1}));
  copy_strided({}, {DType::Float32, {2, 3}, {4, 1}}, to.data(), {DType::Float32, {2, 3}, {1, 0}},
               from.data());
  EXPECT_EQ(to, (std::vector<float>{1, 1, 1, 2, 2, 2, 2, -1}));
  std::vector<double> wide(2);
  copy_strided({}, {DType::Float64, {2}, {1}}, wide.data(), {DType::Float32, {2}, {2}}, from.data());
  EXPECT_EQ(wide, (std::vector<double>{1, 3}));
}

TEST(CudaStridedCopy, NothingToCopy) {
  float x = 5;
  copy_strided({}, {DType::Float32, {0, 2}, {2, 1}}, &x, {DType::Float32, {0, 2}, {2, 1}}, &x);
  EXPECT_EQ(x, 5);
}

}  // namespace
}  // namespace fl::runtime::cuda
