#include "flambeau/library/matmul.h"

#include <thread>

#include "flambeau/base/error.h"
#include "flambeau/base/parallel.h"
#include "tests/library/products.h"

namespace fl::library {
namespace {

using test::Buffer;
using test::with_layout;

/// Runs `desc` against loops in double; what is not written must stay.
void expect_product(const MatmulDesc& d) {
  SCOPED_TRACE(d.text());
  ASSERT_TRUE(matmul_supported(d));
  const test::Product p(d);
  Buffer c = p.c;
  matmul(d, p.a.data(), p.b.data(), d.bias ? p.bias.data() : nullptr, c.data());
  test::expect_close(d.dtype, c, p.expected);
}

class LibraryMatmul : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!available()) GTEST_SKIP() << "built without oneDNN";
  }
};

TEST_F(LibraryMatmul, EverySmallSizeInEveryLayout) {
  const int64_t sizes[] = {0, 1, 2, 7, 33};
  for (const int64_t m : sizes)
    for (const int64_t n : sizes)
      for (const int64_t k : sizes)
        for (int layout = 0; layout < 16; ++layout)
          expect_product(with_layout(MatmulDesc::dense(ScalarKind::F32, m, n, k), layout & 1, layout & 2,
                                     layout & 4, layout & 8 ? 3 : 0));
}

TEST_F(LibraryMatmul, LargerThanABlock) {
  for (int layout = 0; layout < 8; ++layout)
    expect_product(
        with_layout(MatmulDesc::dense(ScalarKind::F32, 130, 97, 211), layout & 1, layout & 2, layout & 4, 5));
}

TEST_F(LibraryMatmul, ThinProducts) {
  for (const ScalarKind dtype : {ScalarKind::F32, ScalarKind::BF16})
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 150, 160},
                                  {150, 1, 160},
                                  {5, 70, 90},
                                  {3, 520, 530},
                                  {520, 9, 530},
                                  {1, 1, 700}})
      for (int layout = 0; layout < 8; ++layout) {
        MatmulDesc d = with_layout(MatmulDesc::dense(dtype, m, n, k), layout & 1, layout & 2, layout & 4, 0);
        d.bias = true;
        for (const MatrixStrides& s : {MatrixStrides{{0, 0}, 0, 1}, d.c}) {
          d.bias_strides = s;
          d.beta = s == d.c ? 0 : 1;
          if (matmul_supported(d)) expect_product(d);
        }
      }
}

TEST_F(LibraryMatmul, BFloat16) {
  for (int layout = 0; layout < 8; ++layout)
    for (const int64_t n : {1, 5, 40}) {
      const MatmulDesc d =
          with_layout(MatmulDesc::dense(ScalarKind::BF16, 19, n, 24), layout & 1, layout & 2, layout & 4, 0);
      if (matmul_supported(d)) expect_product(d);
    }
}

TEST_F(LibraryMatmul, Float16WhereTheMachineHasIt) {
  const MatmulDesc d = MatmulDesc::dense(ScalarKind::F16, 19, 12, 24);
  if (!matmul_supported(d)) GTEST_SKIP() << "no f16 kernels for this processor";
  expect_product(d);
}

TEST_F(LibraryMatmul, Float64IsNotTaken) {
  const MatmulDesc d = MatmulDesc::dense(ScalarKind::F64, 4, 4, 4);
  EXPECT_FALSE(matmul_supported(d));
  EXPECT_THROW(matmul(d, nullptr, nullptr, nullptr, nullptr), NotImplementedError);
}

TEST_F(LibraryMatmul, RandomLayouts) {
  std::mt19937 random(13);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  int taken = 0;
  for (int drawn = 0; drawn < 500; ++drawn) {
    MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, draw(1, 40), draw(1, 40), draw(0, 40));
    d.batch = {draw(1, 3), draw(1, 3)};
    // Memory order: batches outside, or one of them between the rows and the columns as attention heads are.
    const auto place = [&](int64_t rows, int64_t columns, bool repeats) {
      const bool transposed = draw(0, 1);
      if (transposed) std::swap(rows, columns);
      const int64_t inner = columns + draw(0, 2), heads = draw(0, 2) ? 1 : d.batch[1];
      MatrixStrides s{{0, heads > 1 ? inner : rows * inner}, heads * inner, 1};
      s.batch[0] = rows * inner * d.batch[1];
      if (repeats && draw(0, 3) == 0) s.batch[draw(0, 1)] = 0;
      if (transposed) std::swap(s.row, s.column);
      return s;
    };
    d.a = place(d.m, d.k, true);
    d.b = place(d.k, d.n, true);
    d.c = place(d.m, d.n, false);
    d.bias = draw(0, 1);
    if (d.bias) d.bias_strides = draw(0, 1) ? place(d.m, d.n, true) : MatrixStrides{{0, 0}, 0, 1};
    d.beta = static_cast<float>(draw(0, 1));
    d.relu = draw(0, 1);
    if (!matmul_supported(d)) continue;
    ++taken;
    expect_product(d);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(taken, 250);
}

TEST_F(LibraryMatmul, BatchesWithStridesAndBroadcast) {
  MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 6, 10, 8);
  d.batch = {3, 4};
  d.c.batch = {4 * 60, 60};
  const std::array<int64_t, 2> a_batches[] = {{4 * 48, 48}, {0, 48}, {48, 0}, {0, 0}, {4 * 50, 50}};
  const std::array<int64_t, 2> b_batches[] = {{4 * 80, 80}, {0, 80}, {80, 0}, {0, 0}};
  for (const auto& a : a_batches)
    for (const auto& b : b_batches) {
      d.a.batch = a;
      d.b.batch = b;
      const bool repeats = (a[0] == 0 && b[0] == 0) || (a[1] == 0 && b[1] == 0);
      if (matmul_supported(d))
        expect_product(d);
      else
        EXPECT_TRUE(repeats) << d.text();
    }
}

TEST_F(LibraryMatmul, AttentionHeadsInPlace) {
  const int64_t heads = 3, tokens = 20, width = 16;
  MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, tokens, tokens, width);
  d.batch = {2, heads};
  d.a = {{tokens * heads * width, width}, heads * width, 1};
  d.b = {{tokens * heads * width, width}, 1, heads * width};
  d.c = {{heads * tokens * tokens, tokens * tokens}, tokens, 1};
  expect_product(d);
  MatmulDesc back = MatmulDesc::dense(ScalarKind::F32, tokens, width, tokens);
  back.batch = d.batch;
  back.a = d.c;
  back.b = d.a;
  back.c = d.a;
  expect_product(back);
}

TEST_F(LibraryMatmul, OneMatrixForARowBatch) {
  MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 5, 9, 7);
  d.batch = {2, 3};
  d.a.batch = {3 * 35, 35};
  d.c.batch = {3 * 45, 45};
  d.bias = true;
  d.bias_strides = {{0, 0}, 0, 1};
  expect_product(d);
}

TEST_F(LibraryMatmul, BiasOfEveryStride) {
  for (const bool c_columns : {false, true})
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{12, 17}, {1, 17}, {12, 1}, {1, 1}}) {
      MatmulDesc d = with_layout(MatmulDesc::dense(ScalarKind::F32, m, n, 9), false, true, c_columns, 0);
      d.batch = {1, 2};
      d.a.batch[1] = m * 9;
      d.b.batch[1] = n * 9;
      d.c.batch[1] = m * n;
      d.bias = true;
      const MatrixStrides strides[] = {
          {{0, 0}, 0, 1},     {{0, 0}, 1, 0},     {{0, 0}, 0, 0}, d.c,
          {{0, m * n}, 1, m}, {{0, m * n}, n, 1}, {{0, n}, 0, 1}, {{0, 0}, n, 1}};
      for (const MatrixStrides& s : strides)
        for (const bool relu : {false, true}) {
          d.bias_strides = s;
          d.relu = relu;
          expect_product(d);
        }
    }
}

TEST_F(LibraryMatmul, AddsOntoC) {
  for (const float beta : {1.0f, -0.5f})
    for (const int64_t k : {0, 1, 30, 600})
      for (const bool bias : {false, true}) {
        MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 40, 23, k);
        d.beta = beta;
        d.bias = bias;
        d.bias_strides = {{0, 0}, 0, 1};
        expect_product(d);
      }
}

TEST_F(LibraryMatmul, ReluKeepsNan) {
  MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 3, 16, 1);
  d.relu = true;
  std::vector<float> a{-1, 2, std::nanf("")}, b(16, 1.0f), c(48, 5.0f);
  matmul(d, a.data(), b.data(), nullptr, c.data());
  EXPECT_EQ(c[0], 0);
  EXPECT_EQ(c[16], 2);
  EXPECT_TRUE(std::isnan(c[32]));
}

TEST_F(LibraryMatmul, DoesNotReadCWithoutBeta) {
  for (const int64_t k : {0, 5}) {
    const MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 3, 4, k);
    std::vector<float> a(15, 1.0f), b(20, 1.0f), c(12, std::nanf(""));
    matmul(d, a.data(), b.data(), nullptr, c.data());
    for (const float x : c) EXPECT_EQ(x, static_cast<float>(k));
  }
}

TEST_F(LibraryMatmul, RefusesLayoutsWithoutUnitStride) {
  MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 4, 4, 4);
  d.a = {{0, 0}, 8, 2};
  EXPECT_FALSE(matmul_supported(d));
  d = MatmulDesc::dense(ScalarKind::F32, 4, 4, 4);
  d.b = {{0, 0}, 0, 1};
  EXPECT_FALSE(matmul_supported(d));
  d = MatmulDesc::dense(ScalarKind::F32, 4, 4, 4);
  d.c = {{0, 0}, 2, 1};
  EXPECT_FALSE(matmul_supported(d));
}

TEST_F(LibraryMatmul, RefusesBatchesThatOverlap) {
  MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 3, 4, 5);
  d.batch = {1, 2};
  d.b.batch[1] = 20;
  d.c.batch[1] = 12;
  for (const int64_t step : {1, 5, 14}) {
    d.a.batch[1] = step;
    EXPECT_FALSE(matmul_supported(d)) << step;
  }
  d.a.batch[1] = 15;
  EXPECT_TRUE(matmul_supported(d));
}

TEST_F(LibraryMatmul, NegativeSizeIsAnError) {
  EXPECT_THROW(plan_matmul(MatmulDesc::dense(ScalarKind::F32, -1, 4, 4)), ValueError);
}

TEST_F(LibraryMatmul, EqualBitsFromManyThreads) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{70, 90, 310}, {3, 600, 600}, {1, 900, 310}, {900, 1, 310}}) {
    const MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, m, n, k);
    std::vector<float> a(d.m * d.k), b(d.k * d.n), first(d.m * d.n);
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (float& x : a) x = normal(random);
    for (float& x : b) x = normal(random);
    const auto plan = plan_matmul(d);
    plan->run(a.data(), b.data(), nullptr, first.data(), thread_workspace());
    std::vector<std::thread> threads;
    std::atomic<int> different = 0;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        std::vector<float> c(d.m * d.n);
        for (int i = 0; i < 25; ++i) {
          std::fill(c.begin(), c.end(), 0.0f);
          plan->run(a.data(), b.data(), nullptr, c.data(), thread_workspace());
          different += std::memcmp(c.data(), first.data(), c.size() * sizeof(float)) != 0;
        }
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(different, 0);
  }
}

TEST_F(LibraryMatmul, ManyThreadsMakeTheSamePlans) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int64_t n = 1; n < 40; ++n) {
        const MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 3, n, 5);
        std::vector<float> a(15, 1.0f), b(5 * n, 2.0f), c(3 * n);
        matmul(d, a.data(), b.data(), nullptr, c.data());
        for (const float x : c) wrong += x != 10;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LibraryMatmul, RunsInsideAParallelRegion) {
  const MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 64, 64, 64);
  const auto plan = plan_matmul(d);
  std::vector<float> a(64 * 64, 1.0f), b(64 * 64, 1.0f), c(2 * 64 * 64);
  Workspace& outside = thread_workspace();
  void* scratch = plan->scratch_bytes() ? outside.bytes(plan->scratch_bytes()) : nullptr;
  parallel_for(2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      plan->run(a.data(), b.data(), nullptr, c.data() + i * 64 * 64, scratch);
  });
  for (const float x : c) ASSERT_EQ(x, 64);
}

}  // namespace
}  // namespace fl::library
