// Random operators draw the numbers of the Philox slots that they reserve.
#include <cmath>
#include <numeric>

#include "flambeau/ops/functions.h"
#include "flambeau/tensor/generator.h"
#include "support.h"

namespace fl::testing {
namespace {

class Random : public ::testing::Test {
 protected:
  void SetUp() override { use_tested_backend(); }
  static double mean(const Tensor& t) {
    const std::vector<double> v = t.to_vector<double>();
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  }
};

TEST_F(Random, UniformNumbersAreThoseOfTheBlocks) {
  const PhiloxSlot slot{42, 7, (int64_t{1} << 32) - 2};
  const Tensor f = philox_uniform({2, 3}, slot.seed_low, slot.seed_high, slot.offset, DType::Float32);
  const Tensor d = philox_uniform({2, 3}, slot.seed_low, slot.seed_high, slot.offset, DType::Float64);
  const std::vector<double> x = f.to_vector<double>(), y = d.to_vector<double>();
  for (int64_t i = 0; i < 6; ++i) {
    const PhiloxBlock b = philox(slot, i);
    EXPECT_EQ(x[i], (b[0] >> 8) * 0x1p-24);
    EXPECT_EQ(y[i], ((b[0] >> 5) * 0x1p26 + (b[1] >> 6)) * 0x1p-53);
  }
}

TEST_F(Random, BitsAreThoseOfTheBlocks) {
  const PhiloxSlot slot{1, 2, 3};
  const std::vector<int64_t> x = philox_bits({5}, 1, 2, 3).to_vector<int64_t>();
  for (int64_t i = 0; i < 5; ++i) {
    const PhiloxBlock b = philox(slot, i);
    EXPECT_EQ(x[i], static_cast<int64_t>(b[0] >> 1) << 32 | static_cast<int64_t>(b[1]));
  }
}

TEST_F(Random, HalvesStayBelowOne) {
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    for (const double v : philox_uniform({4000}, 5, 6, 0, dtype).to_vector<double>()) {
      EXPECT_GE(v, 0);
      EXPECT_LT(v, 1);
    }
  }
}

TEST_F(Random, Moments) {
  manual_seed(1);
  const Sizes size{100, 100};
  EXPECT_NEAR(mean(rand(size)), 0.5, 0.02);
  const Tensor n = randn(size);
  EXPECT_NEAR(mean(n), 0, 0.04);
  EXPECT_NEAR(mean(mul(n, n)), 1, 0.06);
  EXPECT_NEAR(mean(bernoulli_p(zeros(size), 0.3)), 0.3, 0.02);
  const Tensor kept = dropout(ones(size), 0.25, true);
  EXPECT_NEAR(mean(kept), 1, 0.03);
  for (const double v : kept.to_vector<double>()) EXPECT_TRUE(v == 0 || std::abs(v - 4.0 / 3) < 1e-6) << v;
}

TEST_F(Random, IntegersFillTheRange) {
  manual_seed(1);
  std::vector<int> counts(7);
  for (const int64_t v : randint(-3, 4, {700}).to_vector<int64_t>()) {
    ASSERT_GE(v, -3);
    ASSERT_LT(v, 4);
    ++counts[v + 3];
  }
  for (const int c : counts) EXPECT_GT(c, 60);
}

TEST_F(Random, EveryCallReservesItsElementsOnce) {
  const Ref<Generator>& g = default_generator(Device{});
  manual_seed(1);
  rand({3, 4});
  EXPECT_EQ(g->offset(), 12);
  Tensor x = zeros({5});
  uniform.in_place(x, -1.0, 1.0);
  EXPECT_EQ(g->offset(), 17);
  dropout(x, 0.5, true);
  EXPECT_EQ(g->offset(), 22);
  dropout(x, 0.5, false);
  EXPECT_EQ(g->offset(), 22);
}

TEST_F(Random, SeedAndGeneratorDecide) {
  manual_seed(3);
  const std::vector<double> a = rand({4}).to_vector<double>(), b = rand({4}).to_vector<double>();
  manual_seed(3);
  EXPECT_EQ(rand({4}).to_vector<double>(), a);
  EXPECT_NE(a, b);
  const auto own = make_ref<Generator>(Device{}, 3);
  EXPECT_EQ(rand({4}, own.get()).to_vector<double>(), a);
}

}  // namespace
}  // namespace fl::testing
