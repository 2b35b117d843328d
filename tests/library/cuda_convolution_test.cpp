// cuDNN's convolutions against loops in double.
#include "flambeau/library/cuda/convolution.h"

#include <chrono>

#include "flambeau/library/cuda/cudnn.h"
#include "tests/library/convolutions.h"
#include "tests/library/cuda_device.h"

namespace fl::library::cuda {
namespace {

using library::test::Buffer;
using library::test::Convolution;
using library::test::square;
using test::DeviceMemory;
using Layout = ConvolutionDesc::Layout;

constexpr ScalarKind kTypes[] = {ScalarKind::F32, ScalarKind::BF16, ScalarKind::F16};
constexpr ConvolutionPass kPasses[] = {ConvolutionPass::Forward, ConvolutionPass::BackwardData,
                                       ConvolutionPass::BackwardWeights};

class GpuConvolution : public test::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped() && !find_cudnn()) GTEST_SKIP() << why_no_cudnn();
  }

  /// False where there is no plan.
  bool expect_convolution(const ConvolutionDesc& d, int64_t offset = 0) {
    SCOPED_TRACE(d.text());
    const auto start = std::chrono::steady_clock::now();
    const auto plan = plan_convolution(d, 0);
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (ms > 50 || !plan)
      std::printf("%6.1f ms: %s of %s\n", ms, plan ? plan->implementation().c_str() : "no plan",
                  d.text().c_str());
    if (!plan) return false;
    Convolution c(d);
    const int64_t bytes = offset * scalar_bytes(d.dtype);
    const DeviceMemory input(c.input, bytes), weight(c.weight, bytes), bias(c.bias, bytes),
        output(c.output, bytes);
    plan->run({input.data(), weight.data(), d.bias ? bias.data() : nullptr, output.data()}, nullptr,
              workspace_);
    const bool forward = d.pass == ConvolutionPass::Forward, data = d.pass == ConvolutionPass::BackwardData;
    (forward ? output : data ? input : weight).read(c.result());
    [&] { library::test::expect_same(d, c.result(), c.expected, d.beta != 0 ? 3 : 1); }();
    if (HasFatalFailure()) std::printf("  failed: %s\n", plan->implementation().c_str());
    return true;
  }

  /// All types, passes and layouts.
  void expect_all(ConvolutionDesc d) {
    for (const ScalarKind dtype : kTypes)
      for (const ConvolutionPass pass : kPasses)
        for (const Layout layout : {Layout::Contiguous, Layout::ChannelsLast}) {
          d.dtype = dtype;
          d.pass = pass;
          d.set_layout(layout, layout);
          EXPECT_TRUE(expect_convolution(d)) << d.text();
        }
  }
};

TEST_F(GpuConvolution, Images) {
  std::printf("%s\n", cudnn_version().c_str());
  expect_all(square(2, 16, 9, 24, 3, 1, 1));
  expect_all(square(2, 3, 17, 8, 7, 2, 3));
  expect_all(square(3, 5, 6, 7, 1, 1, 0));
  expect_all(square(1, 32, 8, 64, 1, 2, 0));
}

TEST_F(GpuConvolution, GroupsAndDepthwise) {
  expect_all(square(2, 8, 7, 12, 3, 1, 1, 4));
  expect_all(square(2, 16, 7, 16, 3, 1, 1, 16));
}

TEST_F(GpuConvolution, DilationAndOddSizes) {
  ConvolutionDesc d = square(2, 8, 11, 8, 3, 1, 2);
  d.dilation = {2, 2, 1};
  expect_all(d);
  d.input = {11, 6, 1};
  d.kernel = {3, 2, 1};
  d.stride = {2, 1, 1};
  d.dilation = {1, 2, 1};
  d.padding_begin = d.padding_end = {0, 1, 0};
  expect_all(d);
}

TEST_F(GpuConvolution, PaddingOfOneSide) {
  for (const ScalarKind dtype : kTypes)
    for (const ConvolutionPass pass : kPasses) {
      ConvolutionDesc d = square(2, 8, 6, 8, 3, 1, 1);
      d.dtype = dtype;
      d.pass = pass;
      d.padding_end = {2, 0, 0};
      d.set_layout(Layout::ChannelsLast, Layout::ChannelsLast);
      expect_convolution(d);
    }
}

TEST_F(GpuConvolution, LinesAndVolumes) {
  ConvolutionDesc d = square(2, 8, 12, 16, 3, 2, 1);
  d.spatial = 1;
  expect_all(d);
  d.spatial = 3;
  d.input = {5, 6, 7};
  d.kernel = {3, 3, 3};
  d.stride = {1, 2, 1};
  d.padding_begin = d.padding_end = {1, 1, 1};
  expect_all(d);
}

TEST_F(GpuConvolution, BiasAndWhatIsAdded) {
  for (const ScalarKind dtype : kTypes)
    for (const Layout layout : {Layout::Contiguous, Layout::ChannelsLast}) {
      ConvolutionDesc d = square(2, 16, 8, 32, 3, 1, 1);
      d.dtype = dtype;
      d.set_layout(layout, layout);
      d.bias = true;
      std::printf("bias %s layout %d: %s\n", scalar_name(dtype), static_cast<int>(layout),
                  expect_convolution(d) ? plan_convolution(d, 0)->implementation().c_str() : "none");
      d.bias = false;
      d.beta = 1;
      for (const ConvolutionPass pass : kPasses) {
        d.pass = pass;
        EXPECT_TRUE(expect_convolution(d)) << d.text();
      }
    }
}

TEST_F(GpuConvolution, AddressesThatAreNotAligned) {
  for (const ScalarKind dtype : kTypes)
    for (const ConvolutionPass pass : kPasses)
      for (const Layout layout : {Layout::Contiguous, Layout::ChannelsLast}) {
        ConvolutionDesc d = square(2, 16, 8, 32, 3, 1, 1);
        d.dtype = dtype;
        d.pass = pass;
        d.set_layout(layout, layout);
        EXPECT_TRUE(expect_convolution(d, 1)) << d.text();
      }
}

TEST_F(GpuConvolution, Float64) {
  for (const ConvolutionPass pass : kPasses)
    for (const Layout layout : {Layout::Contiguous, Layout::ChannelsLast}) {
      ConvolutionDesc d = square(2, 4, 6, 8, 3, 1, 1);
      d.dtype = ScalarKind::F64;
      d.pass = pass;
      d.set_layout(layout, layout);
      EXPECT_TRUE(expect_convolution(d)) << d.text();
    }
}

TEST_F(GpuConvolution, EmptyOperands) {
  ConvolutionDesc d = square(0, 4, 6, 8, 3, 1, 1);
  for (const ConvolutionPass pass : kPasses) {
    d.pass = pass;
    d.set_layout(Layout::Contiguous, Layout::Contiguous);
    EXPECT_TRUE(expect_convolution(d));
  }
}

TEST_F(GpuConvolution, Tf32OnlyWhereItIsAllowed) {
  ConvolutionDesc d = square(2, 64, 16, 64, 3, 1, 1);
  const library::test::ConvolutionSizes count(d);
  Buffer input(d.dtype, count.input), weight(d.dtype, count.weight), output(d.dtype, count.output);
  std::mt19937 random(5);
  for (int64_t i = 0; i < input.count(); ++i) input.set(i, random() / 4294967296.0 - 0.5);
  for (int64_t i = 0; i < weight.count(); ++i) weight.set(i, random() / 4294967296.0 - 0.5);
  std::vector<double> expected(output.count());
  library::test::for_each_product(
      d, [&](int64_t in, int64_t w, int64_t out) { expected[out] += input.get(in) * weight.get(w); });
  const DeviceMemory x(input), w(weight), y(output);
  double errors[2] = {};
  for (const bool tf32 : {false, true}) {
    const auto plan = plan_convolution(d, 0, {.tf32 = tf32});
    ASSERT_TRUE(plan);
    plan->run({x.data(), w.data(), nullptr, y.data()}, nullptr, workspace_);
    y.read(output);
    for (int64_t i = 0; i < output.count(); ++i)
      errors[tf32] = std::max(errors[tf32], std::abs(output.get(i) - expected[i]));
    std::printf("tf32 %d: error %.2e, %s\n", tf32, errors[tf32], plan->implementation().c_str());
  }
  EXPECT_LT(errors[0], 2e-5);
  EXPECT_GT(errors[1], 1e-4);
  EXPECT_LT(errors[1], 2e-2);
}

}  // namespace
}  // namespace fl::library::cuda
