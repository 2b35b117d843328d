// scaled_dot_product_attention on a device that has a routine for the whole of it: here the CPU, which then
// runs the operator's definition.
#include <cmath>

#include "flambeau/autograd/autograd.h"
#include "flambeau/op/routine_query.h"
#include "flambeau/ops/functions.h"
#include "flambeau/tensor/generator.h"
#include "support.h"

namespace fl::testing {
namespace {

int g_asked = 0;
bool has_attention(const OpInfo& op, const Value*) {
  ++g_asked;
  return op.name() == "_attention";
}

class AttentionRoutine : public ::testing::Test {
 protected:
  void SetUp() override {
    use_tested_backend();
    g_asked = 0;
  }
  void TearDown() override { install_routine_query(DeviceType::CPU, nullptr); }

  static Tensor leaf(IntList sizes, int64_t seed) {
    Tensor x = sub(mul(philox_uniform(sizes, seed, 0, 0, DType::Float64), 4), 2);
    x.set_requires_grad(true);
    return x;
  }

  /// Output and gradients without the routine, and with it.
  static void expect_the_same(const Tensors& x, const Tensor& mask, bool causal, bool shares_heads) {
    Tensors both[2];
    for (const bool whole : {false, true}) {
      install_routine_query(DeviceType::CPU, whole ? has_attention : nullptr);
      const Tensor out =
          scaled_dot_product_attention(x[0], x[1], x[2], mask, 0.0, causal, std::nullopt, shares_heads);
      both[whole] = grad({sum(mul(out, out), std::nullopt)}, x);
      both[whole].push_back(out);
    }
    EXPECT_EQ(g_asked, 1);
    for (size_t k = 0; k < both[0].size(); ++k) {
      const auto a = both[0][k].to_vector<double>(), b = both[1][k].to_vector<double>();
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-12) << k << ": " << i;
    }
  }
};

TEST_F(AttentionRoutine, MeansTheSame) {
  expect_the_same({leaf({2, 4, 3, 8}, 1), leaf({2, 4, 5, 8}, 2), leaf({2, 4, 5, 6}, 3)}, {}, false, false);
}
TEST_F(AttentionRoutine, CausalWithSharedHeads) {
  expect_the_same({leaf({2, 4, 3, 8}, 1), leaf({2, 2, 5, 8}, 2), leaf({2, 2, 5, 6}, 3)}, {}, true, true);
}
TEST_F(AttentionRoutine, RanksOtherThanFour) {
  expect_the_same({leaf({3, 8}, 1), leaf({5, 8}, 2), leaf({5, 8}, 3)}, {}, true, false);
  g_asked = 0;
  expect_the_same({leaf({2, 2, 2, 3, 8}, 1), leaf({2, 2, 2, 5, 8}, 2), leaf({2, 2, 2, 5, 8}, 3)}, {}, true,
                  false);
}
TEST_F(AttentionRoutine, MasksOfRowsThatSeeNothing) {
  const Tensor row = unsqueeze(arange_end(3, DType::Int64), 1);
  const Tensor mask = lt(arange_end(5, DType::Int64), row);  // a view of it for all batches
  expect_the_same({leaf({2, 4, 3, 8}, 1), leaf({2, 4, 5, 8}, 2), leaf({2, 4, 5, 6}, 3)},
                  expand(mask, {2, 1, 3, 5}), false, false);
  g_asked = 0;
  const Tensor numbers = where(mask, 0.5, -HUGE_VAL);
  expect_the_same({leaf({4, 3, 8}, 1), leaf({4, 5, 8}, 2), leaf({4, 5, 6}, 3)},
                  _to_copy(numbers, DType::Float64), false, false);
}

TEST_F(AttentionRoutine, DropoutFollowsTheGenerator) {
  install_routine_query(DeviceType::CPU, has_attention);
  const Tensor q = leaf({1, 2, 3, 8}, 1), k = leaf({1, 2, 5, 8}, 2);
  const auto draw = [&] {
    return scaled_dot_product_attention(q, k, k, Tensor(), 0.5, false).to_vector<double>();
  };
  default_generator(Device{})->manual_seed(3);
  const auto first = draw(), second = draw();
  default_generator(Device{})->manual_seed(3);
  EXPECT_EQ(first, draw());
  EXPECT_NE(first, second);
}

TEST_F(AttentionRoutine, ResultLiesAsTheQueryDoes) {
  install_routine_query(DeviceType::CPU, has_attention);
  const Tensor q = transpose(leaf({2, 3, 4, 8}, 1), 1, 2), k = leaf({2, 4, 5, 8}, 2);
  const Tensor out = scaled_dot_product_attention(q, k, k, Tensor(), 0.0, false);
  EXPECT_TRUE(transpose(out, 1, 2).is_contiguous());
}

}  // namespace
}  // namespace fl::testing
