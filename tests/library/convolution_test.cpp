#include "flambeau/library/convolution.h"

#include <thread>

#include "flambeau/base/error.h"
#include "tests/library/values.h"

namespace fl::library {
namespace {

using Layout = ConvolutionDesc::Layout;
using test::Buffer;
using test::close;

int64_t volume(const ConvolutionDesc& d, const std::array<int64_t, 3>& sizes) {
  int64_t n = 1;
  for (int i = 0; i < d.spatial; ++i) n *= sizes[i];
  return n;
}

struct Sizes {
  int64_t input, weight, bias, output;
  explicit Sizes(const ConvolutionDesc& d)
      : input(d.batch * d.in_channels * volume(d, d.input)),
        weight(d.out_channels * (d.in_channels / d.groups) * volume(d, d.kernel)),
        bias(d.pass == ConvolutionPass::BackwardData ? d.in_channels : d.out_channels),
        output(d.batch * d.out_channels * volume(d, d.output())) {}
};

int64_t offset(const ConvolutionDesc::Strides& s, int64_t i, int64_t j, int spatial,
               const std::array<int64_t, 3>& p) {
  int64_t at = i * s[0] + j * s[1];
  for (int x = 0; x < spatial; ++x) at += p[x] * s[2 + x];
  return at;
}

/// Calls f(input offset, weight offset, output offset) for every product.
template <class F>
void for_each_product(const ConvolutionDesc& d, const F& f) {
  const std::array<int64_t, 3> out = d.output();
  const auto space = [&](const std::array<int64_t, 3>& sizes, auto&& body) {
    std::array<int64_t, 3> p{};
    const int64_t n0 = sizes[0], n1 = d.spatial > 1 ? sizes[1] : 1, n2 = d.spatial > 2 ? sizes[2] : 1;
    for (p[0] = 0; p[0] < n0; ++p[0])
      for (p[1] = 0; p[1] < n1; ++p[1])
        for (p[2] = 0; p[2] < n2; ++p[2]) body(p);
  };
  const int64_t in_group = d.in_channels / d.groups, out_group = d.out_channels / d.groups;
  for (int64_t n = 0; n < d.batch; ++n)
    for (int64_t o = 0; o < d.out_channels; ++o)
      for (int64_t i = 0; i < in_group; ++i)
        space(out, [&](const std::array<int64_t, 3>& q) {
          space(d.kernel, [&](const std::array<int64_t, 3>& k) {
            std::array<int64_t, 3> p{};
            for (int x = 0; x < d.spatial; ++x) {
              p[x] = q[x] * d.stride[x] + k[x] * d.dilation[x] - d.padding_begin[x];
              if (p[x] < 0 || p[x] >= d.input[x]) return;
            }
            const int64_t channel = o / out_group * in_group + i;
            f(offset(d.input_strides, n, channel, d.spatial, p), offset(d.weight_strides, o, i, d.spatial, k),
              offset(d.output_strides, n, o, d.spatial, q));
          });
        });
}

/// Calls f(offset, channel) for every element of an image.
template <class F>
void for_each_element(const ConvolutionDesc& d, const ConvolutionDesc::Strides& s, int64_t channels,
                      const std::array<int64_t, 3>& sizes, const F& f) {
  std::array<int64_t, 3> n{1, 1, 1}, p{};
  for (int i = 0; i < d.spatial; ++i) n[i] = sizes[i];
  for (int64_t b = 0; b < d.batch; ++b)
    for (int64_t c = 0; c < channels; ++c)
      for (p[0] = 0; p[0] < n[0]; ++p[0])
        for (p[1] = 0; p[1] < n[1]; ++p[1])
          for (p[2] = 0; p[2] < n[2]; ++p[2]) f(offset(s, b, c, d.spatial, p), c);
}

void expect_same(const ConvolutionDesc& d, const Buffer& actual, const std::vector<double>& expected) {
  for (int64_t i = 0; i < actual.count(); ++i)
    ASSERT_TRUE(close(d.dtype, actual.get(i), expected[i]))
        << i << ": " << actual.get(i) << " for " << expected[i];
}

/// Runs the description's pass against loops in double.
void expect_convolution(const ConvolutionDesc& d) {
  SCOPED_TRACE(d.text());
  ASSERT_TRUE(convolution_supported(d));
  const Sizes count(d);
  Buffer input(d.dtype, count.input, 1), weight(d.dtype, count.weight, 2), bias(d.dtype, count.bias, 3);
  Buffer output(d.dtype, count.output, 4);
  const bool forward = d.pass == ConvolutionPass::Forward, data = d.pass == ConvolutionPass::BackwardData;
  Buffer& result = forward ? output : data ? input : weight;
  std::vector<double> expected(result.count()), expected_bias(d.out_channels);
  for (int64_t i = 0; i < result.count(); ++i) expected[i] = d.beta == 0 ? 0 : d.beta * result.get(i);
  for_each_product(d, [&](int64_t in, int64_t w, int64_t out) {
    if (forward) expected[out] += input.get(in) * weight.get(w);
    if (data) expected[in] += output.get(out) * weight.get(w);
    if (!forward && !data) expected[w] += input.get(in) * output.get(out);
  });
  if (d.bias && forward)
    for_each_element(d, d.output_strides, d.out_channels, d.output(),
                     [&](int64_t at, int64_t channel) { expected[at] += bias.get(channel); });
  if (d.bias && data)
    for_each_element(d, d.input_strides, d.in_channels, d.input,
                     [&](int64_t at, int64_t channel) { expected[at] += bias.get(channel); });
  if (d.bias && !forward && !data)
    for_each_element(d, d.output_strides, d.out_channels, d.output(),
                     [&](int64_t at, int64_t channel) { expected_bias[channel] += output.get(at); });
  if (d.relu)
    for (double& x : expected) x = x < 0 ? 0 : x;
  const ConvolutionData pointers{input.data(), weight.data(), d.bias ? bias.data() : nullptr, output.data()};
  convolution(d, pointers);
  expect_same(d, result, expected);
  if (d.bias && !forward && !data) expect_same(d, bias, expected_bias);
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

ConvolutionDesc square(int64_t batch, int64_t in, int64_t size, int64_t out, int64_t kernel, int64_t stride,
                       int64_t padding, int64_t groups = 1) {
  ConvolutionDesc d;
  d.batch = batch;
  d.in_channels = in;
  d.out_channels = out;
  d.groups = groups;
  d.input = {size, size, 1};
  d.kernel = {kernel, kernel, 1};
  d.stride = {stride, stride, 1};
  d.padding_begin = d.padding_end = {padding, padding, 0};
  d.set_layout(Layout::Contiguous, Layout::Contiguous);
  return d;
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
    const Sizes count(d);
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
