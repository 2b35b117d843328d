#include "flambeau/library/convolution.h"

#include <thread>

#include "flambeau/base/error.h"
#include "tests/library/convolutions.h"

namespace fl::library {
namespace {

using Layout = ConvolutionDesc::Layout;
using test::Buffer;
using test::square;

/// Runs the description's pass against loops in double.
void expect_convolution(const ConvolutionDesc& d) {
  SCOPED_TRACE(d.text());
  ASSERT_TRUE(convolution_supported(d));
  test::Convolution c(d);
  convolution(d, {c.input.data(), c.weight.data(), d.bias ? c.bias.data() : nullptr, c.output.data()});
  test::expect_same(d, c.result(), c.expected);
  if (d.bias && d.pass == ConvolutionPass::BackwardWeights) test::expect_same(d, c.bias, c.expected_bias);
}

constexpr ConvolutionPass kPasses[] = {ConvolutionPass::Forward, ConvolutionPass::BackwardData,
                                       ConvolutionPass::BackwardWeights};

/// All passes in both layouts of images and weights, with and without bias.
void expect_all(ConvolutionDesc d) {
  for (const ConvolutionPass pass : kPasses)
    for (const Layout images : {Layout::Contiguous, Layout::ChannelsLast})
      for (const Layout weight : {Layout::Contiguous, Layout::ChannelsLast})
        for (const bool bias : {false, true}) {
          d.pass = pass;
          d.bias = bias;
          d.set_layout(images, weight);
          expect_convolution(d);
          if (::testing::Test::HasFatalFailure()) return;
        }
}

class LibraryConvolution : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!available()) GTEST_SKIP() << "built without oneDNN";
  }
};

TEST_F(LibraryConvolution, CommonShapes) {
  expect_all(square(2, 3, 11, 8, 3, 1, 1));
  expect_all(square(2, 16, 9, 32, 3, 2, 1));
  expect_all(square(2, 16, 8, 17, 1, 1, 0));
  expect_all(square(1, 8, 8, 16, 1, 2, 0));
  expect_all(square(1, 3, 18, 16, 7, 2, 3));
}

TEST_F(LibraryConvolution, SizesOfOne) {
  expect_all(square(1, 1, 5, 1, 3, 1, 1));
  expect_all(square(1, 1, 1, 1, 1, 1, 0));
  expect_all(square(3, 5, 1, 7, 1, 1, 0));
  expect_all(square(2, 5, 4, 7, 4, 1, 0));
}

TEST_F(LibraryConvolution, Groups) {
  expect_all(square(2, 12, 7, 18, 3, 1, 1, 3));
  expect_all(square(2, 32, 7, 32, 3, 1, 1, 2));
  expect_all(square(2, 16, 9, 16, 3, 1, 1, 16));
  expect_all(square(2, 6, 9, 12, 3, 2, 1, 6));
}

TEST_F(LibraryConvolution, DilationAndUnevenPadding) {
  ConvolutionDesc d = square(2, 6, 13, 9, 3, 1, 2);
  d.dilation = {2, 3, 1};
  expect_all(d);
  d = square(2, 6, 13, 9, 3, 2, 0);
  d.input = {13, 10, 1};
  d.kernel = {2, 3, 1};
  d.stride = {1, 2, 1};
  d.padding_begin = {1, 0, 0};
  d.padding_end = {0, 2, 0};
  expect_all(d);
}

TEST_F(LibraryConvolution, OneAndThreeDimensions) {
  ConvolutionDesc d = square(2, 6, 13, 9, 3, 2, 1);
  d.spatial = 1;
  expect_all(d);
  d.spatial = 3;
  d.input = {5, 6, 7};
  d.kernel = {3, 2, 3};
  d.stride = {1, 2, 1};
  d.padding_begin = d.padding_end = {1, 0, 1};
  expect_all(d);
}

TEST_F(LibraryConvolution, AddsOntoTheResultAndCutsOff) {
  for (const Layout layout : {Layout::Contiguous, Layout::ChannelsLast})
    for (const ConvolutionPass pass : kPasses) {
      ConvolutionDesc d = square(2, 16, 8, 24, 3, 1, 1);
      d.pass = pass;
      d.beta = 0.5f;
      d.relu = pass == ConvolutionPass::Forward;
      d.bias = pass != ConvolutionPass::BackwardWeights;
      d.set_layout(layout, layout);
      expect_convolution(d);
    }
}

TEST_F(LibraryConvolution, TransposedConvolutionWithOutputPadding) {
  // conv_transpose2d(4 channels of 5x5 to 6 channels, kernel 3, stride 2, padding 1, output_padding 1) ->
  // 10x10.
  ConvolutionDesc d = square(2, 6, 10, 4, 3, 2, 1);
  ASSERT_EQ(d.output()[0], 5);
  d.pass = ConvolutionPass::BackwardData;
  d.bias = true;
  expect_convolution(d);
}

TEST_F(LibraryConvolution, BFloat16) {
  for (const ConvolutionPass pass : kPasses)
    for (const Layout layout : {Layout::Contiguous, Layout::ChannelsLast}) {
      ConvolutionDesc d = square(2, 16, 8, 24, 3, 1, 1);
      d.dtype = ScalarKind::BF16;
      d.pass = pass;
      d.set_layout(layout, layout);
      if (convolution_supported(d)) expect_convolution(d);
    }
}

TEST_F(LibraryConvolution, NothingToSum) {
  for (const ConvolutionPass pass : kPasses) {
    ConvolutionDesc d = square(0, 3, 5, 4, 3, 1, 1);
    d.pass = pass;
    expect_convolution(d);
    d = square(2, 0, 5, 4, 3, 1, 1);
    d.pass = pass;
    d.bias = pass == ConvolutionPass::Forward;
    expect_convolution(d);
    d = square(2, 3, 5, 0, 3, 1, 1);
    d.pass = pass;
    d.bias = pass == ConvolutionPass::BackwardData;
    expect_convolution(d);
  }
}

TEST_F(LibraryConvolution, RandomGeometry) {
  std::mt19937 random(11);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  int taken = 0, drawn = 0;
  while (drawn < 300) {
    ConvolutionDesc d;
    d.spatial = static_cast<int>(draw(1, 3));
    d.groups = draw(0, 2) ? 1 : draw(2, 4);
    d.batch = draw(1, 3);
    d.in_channels = d.groups * draw(1, d.groups > 1 ? 3 : 20);
    d.out_channels = d.groups * draw(1, d.groups > 1 ? 3 : 20);
    bool fits = true;
    for (int i = 0; i < d.spatial; ++i) {
      d.input[i] = draw(1, 9);
      d.kernel[i] = draw(1, 4);
      d.stride[i] = draw(1, 3);
      d.dilation[i] = draw(1, 2);
      d.padding_begin[i] = draw(0, 4);
      d.padding_end[i] = draw(0, 4);
      fits &= d.input[i] + d.padding_begin[i] + d.padding_end[i] > d.dilation[i] * (d.kernel[i] - 1);
    }
    if (!fits) continue;
    ++drawn;
    d.pass = kPasses[draw(0, 2)];
    d.bias = draw(0, 1);
    d.relu = d.pass == ConvolutionPass::Forward && draw(0, 1);
    d.beta = d.bias ? 0.0f : static_cast<float>(draw(0, 1));
    d.set_layout(static_cast<Layout>(draw(0, 1)), static_cast<Layout>(draw(0, 1)));
    const Layout input_layout = static_cast<Layout>(draw(0, 1));
    d.input_strides = ConvolutionDesc::strides(input_layout, d.in_channels, d.spatial, d.input);
    if (!convolution_supported(d)) continue;
    ++taken;
    expect_convolution(d);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(taken, 200);
}

TEST_F(LibraryConvolution, RefusesOtherStrides) {
  ConvolutionDesc d = square(2, 3, 5, 4, 3, 1, 1);
  d.input_strides[3] = 2;
  EXPECT_FALSE(convolution_supported(d));
}

TEST_F(LibraryConvolution, SizesThatMakeNoSenseAreErrors) {
  EXPECT_THROW(plan_convolution([] {
                 ConvolutionDesc d = square(1, 3, 5, 4, 3, 1, 1);
                 d.input = {2, 5, 1};
                 d.kernel = {5, 3, 1};
                 return d;
               }()),
               RuntimeError);
  ConvolutionDesc d = square(1, 4, 5, 4, 3, 1, 1);
  d.groups = 3;
  EXPECT_THROW(plan_convolution(d), ValueError);
  d.groups = 1;
  d.stride[1] = 0;
  EXPECT_THROW(plan_convolution(d), ValueError);
}

TEST_F(LibraryConvolution, EqualBitsFromManyThreads) {
  for (const ConvolutionPass pass : kPasses) {
    ConvolutionDesc d = square(4, 16, 16, 32, 3, 1, 1);
    d.pass = pass;
    const test::ConvolutionSizes count(d);
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> operands[3] = {std::vector<float>(count.input), std::vector<float>(count.weight),
                                      std::vector<float>(count.output)};
    for (auto& operand : operands)
      for (float& x : operand) x = normal(random);
    const int written = pass == ConvolutionPass::Forward ? 2 : pass == ConvolutionPass::BackwardData ? 0 : 1;
    const auto plan = plan_convolution(d);
    const auto result = [&] {
      std::vector<float> out(operands[written].size());
      const float* p[3] = {operands[0].data(), operands[1].data(), operands[2].data()};
      p[written] = out.data();
      plan->run({p[0], p[1], nullptr, p[2]}, thread_workspace());
      return out;
    };
    const std::vector<float> first = result();
    std::atomic<int> different = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 10; ++i) different += result() != first;
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(different, 0);
  }
}

}  // namespace
}  // namespace fl::library
