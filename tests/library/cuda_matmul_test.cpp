// cuBLASLt's products against loops in double.
#include "flambeau/library/cuda/matmul.h"

#include "flambeau/library/cuda/cublaslt.h"
#include "tests/library/cuda_device.h"
#include "tests/library/products.h"

namespace fl::library::cuda {
namespace {

using library::test::Buffer;
using library::test::Product;
using library::test::with_layout;
using test::DeviceMemory;

constexpr ScalarKind kTypes[] = {ScalarKind::F32, ScalarKind::BF16, ScalarKind::F16, ScalarKind::F64};

class GpuMatmul : public test::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped() && !find_cublaslt()) GTEST_SKIP() << why_no_cublaslt();
  }

  /// `offset`: how far from 64 bytes the operands lie, in elements.
  void expect_product(const MatmulDesc& d, const MatmulOptions& options = {}, int64_t offset = 0) {
    SCOPED_TRACE(d.text());
    const auto plan = plan_matmul(d, 0, options);
    ASSERT_TRUE(plan);
    const Product p(d);
    const int64_t bytes = offset * scalar_bytes(d.dtype);
    const DeviceMemory a(p.a, bytes), b(p.b, bytes), bias(p.bias, bytes), c(p.c, bytes);
    plan->run(a.data(), b.data(), d.bias ? bias.data() : nullptr, c.data(), nullptr, workspace_);
    Buffer result = p.c;
    c.read(result);
    // With an addend the library rounds the product to 16 bits before it adds.
    const bool adds = d.beta != 0 || (d.bias && d.bias_strides.row != 0);
    library::test::expect_close(d.dtype, result, p.expected, adds ? 3 : 1);
    if (HasFatalFailure()) std::printf("  failed: %s\n", plan->implementation().c_str());
  }
};

TEST_F(GpuMatmul, TypesAndLayouts) {
  std::printf("%s\n", cublaslt_version().c_str());
  for (const ScalarKind dtype : kTypes)
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                  {1, 70, 33},
                                  {33, 1, 70},
                                  {7, 5, 3},
                                  {64, 48, 80},
                                  {130, 97, 211},
                                  {256, 8, 16}})
      for (int layout = 0; layout < 16; ++layout)
        expect_product(with_layout(MatmulDesc::dense(dtype, m, n, k), layout & 1, layout & 2, layout & 4,
                                   layout & 8 ? 3 : 0));
}

TEST_F(GpuMatmul, SumsAreWide) {
  // A long sum of small numbers stands still in 16 bits.
  for (const ScalarKind dtype : {ScalarKind::BF16, ScalarKind::F16}) {
    const int64_t k = 16384;
    const MatmulDesc d = MatmulDesc::dense(dtype, 8, 8, k);
    Buffer a(dtype, 8 * k), b(dtype, 8 * k), c(dtype, 64);
    for (int64_t i = 0; i < 8 * k; ++i) {
      a.set(i, 1);
      b.set(i, 0.125);
    }
    const auto plan = plan_matmul(d, 0);
    ASSERT_TRUE(plan);
    const DeviceMemory da(a), db(b), dc(c);
    plan->run(da.data(), db.data(), nullptr, dc.data(), nullptr, workspace_);
    dc.read(c);
    for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(c.get(i), 2048) << plan->implementation();
  }
}

TEST_F(GpuMatmul, BatchesOfTwoDimensionsAndBroadcast) {
  for (const ScalarKind dtype : kTypes) {
    MatmulDesc d = MatmulDesc::dense(dtype, 6, 10, 8);
    d.batch = {3, 4};
    d.c.batch = {4 * 60, 60};
    for (const auto& a : {std::array<int64_t, 2>{4 * 48, 48}, {0, 48}, {48, 0}, {0, 0}, {4 * 50, 50}})
      for (const auto& b : {std::array<int64_t, 2>{4 * 80, 80}, {0, 80}, {80, 0}, {0, 0}}) {
        d.a.batch = a;
        d.b.batch = b;
        expect_product(d);
      }
  }
}

TEST_F(GpuMatmul, HeadsOfAttentionInPlace) {
  const int64_t heads = 3, tokens = 20, width = 16;
  for (const ScalarKind dtype : kTypes) {
    MatmulDesc d = MatmulDesc::dense(dtype, tokens, tokens, width);
    d.batch = {2, heads};
    d.a = {{tokens * heads * width, width}, heads * width, 1};
    d.b = {{tokens * heads * width, width}, 1, heads * width};
    d.c = {{heads * tokens * tokens, tokens * tokens}, tokens, 1};
    expect_product(d);
    MatmulDesc back = MatmulDesc::dense(dtype, tokens, width, tokens);
    back.batch = d.batch;
    back.a = d.c;
    back.b = back.c = d.a;
    expect_product(back);
  }
}

TEST_F(GpuMatmul, AddressesThatAreNotAligned) {
  for (const ScalarKind dtype : kTypes)
    for (const int64_t offset : {1, 2, 4})
      for (int layout = 0; layout < 8; ++layout)
        expect_product(
            with_layout(MatmulDesc::dense(dtype, 64, 48, 80), layout & 1, layout & 2, layout & 4, 0), {},
            offset);
}

TEST_F(GpuMatmul, EmptySizes) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{0, 4, 5}, {4, 0, 5}, {4, 5, 0}}) {
    expect_product(MatmulDesc::dense(ScalarKind::F32, m, n, k));
    expect_product(with_layout(MatmulDesc::dense(ScalarKind::BF16, m, n, k), false, false, true, 3));
  }
}

TEST_F(GpuMatmul, BiasAndWhatIsAdded) {
  for (const ScalarKind dtype : kTypes) {
    MatmulDesc d = MatmulDesc::dense(dtype, 40, 24, 32);
    for (const float beta : {1.0f, -0.5f}) {
      d.beta = beta;
      expect_product(d);
    }
    d.beta = 0;
    d.bias = true;
    d.bias_strides = d.c;
    expect_product(d);
    d.batch = {1, 3};
    d.a.batch[1] = 40 * 32;
    d.b.batch[1] = 24 * 32;
    d.c.batch[1] = 40 * 24;
    expect_product(d);
    d.bias_strides = {{0, 0}, 0, 1};
    expect_product(d);
    d.c.batch[1] = 24;
    d.c.row = 24 * 3;
    expect_product(d);
  }
}

TEST_F(GpuMatmul, Tf32OnlyWhereItIsAllowed) {
  const int64_t n = 256;
  const MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, n, n, n);
  Buffer a(ScalarKind::F32, n * n), b(ScalarKind::F32, n * n), c(ScalarKind::F32, n * n);
  std::mt19937 random(5);
  std::uniform_real_distribution<double> draw(-1, 1);
  for (int64_t i = 0; i < n * n; ++i) {
    a.set(i, draw(random));
    b.set(i, draw(random));
  }
  const DeviceMemory da(a), db(b), dc(c);
  double errors[2];
  for (const bool tf32 : {false, true}) {
    const auto plan = plan_matmul(d, 0, {.tf32 = tf32});
    ASSERT_TRUE(plan);
    plan->run(da.data(), db.data(), nullptr, dc.data(), nullptr, workspace_);
    dc.read(c);
    double error = 0;
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int64_t l = 0; l < n; ++l) sum += a.get(i * n + l) * b.get(l * n + i);
      error = std::max(error, std::abs(sum - c.get(i * n + i)));
    }
    errors[tf32] = error;
    std::printf("tf32 %d: error %.2e, %s\n", tf32, error, plan->implementation().c_str());
  }
  EXPECT_LT(errors[0], 2e-5);
  EXPECT_GT(errors[1], 1e-4);
  EXPECT_LT(errors[1], 2e-2);
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

double gelu_slope(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

TEST_F(GpuMatmul, Epilogues) {
  for (const ScalarKind dtype : {ScalarKind::F32, ScalarKind::BF16, ScalarKind::F16})
    for (const bool bias : {false, true})
      for (const MatmulEpilogue forward : {MatmulEpilogue::Relu, MatmulEpilogue::Gelu,
                                           MatmulEpilogue::ReluAndMask, MatmulEpilogue::GeluAndInput}) {
        MatmulDesc d = MatmulDesc::dense(dtype, 24, 40, 8);
        d.bias = bias;
        d.bias_strides = {{0, 0}, 0, 1};
        const auto plan = plan_matmul(d, 0, {.epilogue = forward});
        const char* name = scalar_name(dtype);
        if (!plan) {
          std::printf("no plan: %s epilogue %d bias %d\n", name, static_cast<int>(forward), bias);
          EXPECT_EQ(dtype, ScalarKind::F32);
          continue;
        }
        const Product p(d);
        const DeviceMemory a(p.a), b(p.b), v(p.bias), c(p.c), aux(std::max<int64_t>(plan->aux_bytes(), 1));
        plan->run(a.data(), b.data(), bias ? v.data() : nullptr, c.data(), nullptr, workspace_, aux.data());
        Buffer result = p.c;
        c.read(result);
        const bool relu = forward == MatmulEpilogue::Relu || forward == MatmulEpilogue::ReluAndMask;
        const auto f = [&](double x) { return relu ? std::max(x, 0.0) : gelu(x); };
        for (int64_t i = 0; i < result.count(); ++i) {
          const double x = p.expected.get(i);
          ASSERT_NEAR(result.get(i), f(x), library::test::tolerance(dtype, x) * 3) << name << " " << x;
        }
        if (!plan->aux_bytes()) continue;
        const auto backward =
            plan_matmul(MatmulDesc::dense(dtype, 24, 40, 8), 0,
                        {.epilogue = relu ? MatmulEpilogue::ReluGradient : MatmulEpilogue::GeluGradient});
        if (!backward) {
          std::printf("no plan: %s gradient of epilogue %d\n", name, static_cast<int>(forward));
          continue;
        }
        MatmulDesc plain = d;
        plain.bias = false;
        const Product q(plain);
        backward->run(a.data(), b.data(), nullptr, c.data(), nullptr, workspace_, aux.data());
        c.read(result);
        for (int64_t i = 0; i < result.count(); ++i) {
          const double x = p.expected.get(i), slope = relu ? (x >= 0 ? 1 : 0) : gelu_slope(x);
          // The library's tanh is good to 1e-5 here.
          ASSERT_NEAR(
              result.get(i), q.expected.get(i) * slope,
              library::test::tolerance(dtype, q.expected.get(i)) * (dtype == ScalarKind::F32 ? 40 : 6))
              << name << " " << x;
        }
      }
}

TEST_F(GpuMatmul, ReluMakesZeroOfNan) {
  const MatmulDesc d = MatmulDesc::dense(ScalarKind::F32, 8, 8, 1);
  const auto plan = plan_matmul(d, 0, {.epilogue = MatmulEpilogue::Relu});
  ASSERT_TRUE(plan);
  Buffer a(ScalarKind::F32, 8), b(ScalarKind::F32, 8), c(ScalarKind::F32, 64);
  for (int64_t i = 0; i < 8; ++i) {
    a.set(i, i == 0 ? NAN : -1);
    b.set(i, 1);
  }
  const DeviceMemory da(a), db(b), dc(c);
  plan->run(da.data(), db.data(), nullptr, dc.data(), nullptr, workspace_);
  dc.read(c);
  EXPECT_EQ(c.get(0), 0);
  EXPECT_EQ(c.get(8), 0);
  MatmulDesc keeps_nan = d;
  keeps_nan.relu = true;
  EXPECT_FALSE(plan_matmul(keeps_nan, 0));
}

TEST_F(GpuMatmul, EqualInputsGiveEqualBits) {
  for (const ScalarKind dtype : kTypes) {
    const MatmulDesc d = MatmulDesc::dense(dtype, 64, 64, 8192);
    const auto plan = plan_matmul(d, 0);
    ASSERT_TRUE(plan);
    Buffer a(dtype, 64 * 8192), b(dtype, 64 * 8192), first(dtype, 64 * 64), again = first;
    std::mt19937 random(9);
    for (int64_t i = 0; i < a.count(); ++i) {
      a.set(i, random() / 4294967296.0 - 0.5);
      b.set(i, random() / 4294967296.0 - 0.5);
    }
    const DeviceMemory da(a), db(b), dc(first);
    std::printf("%s: %s\n", scalar_name(dtype), plan->implementation().c_str());
    for (int i = 0; i < 4; ++i) {
      plan->run(da.data(), db.data(), nullptr, dc.data(), nullptr, workspace_);
      dc.read(i == 0 ? first : again);
      EXPECT_TRUE(i == 0 || first == again);
    }
  }
}

}  // namespace
}  // namespace fl::library::cuda
