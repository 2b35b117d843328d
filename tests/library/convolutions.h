// A convolution with operands, and its result by loops in double.
#pragma once
#include "flambeau/library/convolution.h"
#include "tests/library/values.h"

namespace fl::library::test {

inline int64_t volume(const ConvolutionDesc& d, const std::array<int64_t, 3>& sizes) {
  int64_t n = 1;
  for (int i = 0; i < d.spatial; ++i) n *= sizes[i];
  return n;
}

struct ConvolutionSizes {
  int64_t input, weight, bias, output;
  explicit ConvolutionSizes(const ConvolutionDesc& d)
      : input(d.batch * d.in_channels * volume(d, d.input)),
        weight(d.out_channels * (d.in_channels / d.groups) * volume(d, d.kernel)),
        bias(d.pass == ConvolutionPass::BackwardData ? d.in_channels : d.out_channels),
        output(d.batch * d.out_channels * volume(d, d.output())) {}
};

inline int64_t offset(const ConvolutionDesc::Strides& s, int64_t i, int64_t j, int spatial,
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

struct Convolution {
  ConvolutionPass pass;
  Buffer input, weight, bias, output;  // what is written as it is before
  std::vector<double> expected, expected_bias;

  explicit Convolution(const ConvolutionDesc& d) : Convolution(d, ConvolutionSizes(d)) {
    const bool forward = pass == ConvolutionPass::Forward, data = pass == ConvolutionPass::BackwardData;
    expected.resize(result().count());
    expected_bias.resize(d.out_channels);
    for (int64_t i = 0; i < result().count(); ++i) expected[i] = d.beta == 0 ? 0 : d.beta * result().get(i);
    for_each_product(d, [&](int64_t in, int64_t w, int64_t out) {
      if (forward) expected[out] += input.get(in) * weight.get(w);
      if (data) expected[in] += output.get(out) * weight.get(w);
      if (!forward && !data) expected[w] += input.get(in) * output.get(out);
    });
    if (d.bias && data)
      for_each_element(d, d.input_strides, d.in_channels, d.input,
                       [&](int64_t at, int64_t channel) { expected[at] += bias.get(channel); });
    if (d.bias && !data)
      for_each_element(d, d.output_strides, d.out_channels, d.output(), [&](int64_t at, int64_t channel) {
        if (forward) expected[at] += bias.get(channel);
        if (!forward) expected_bias[channel] += output.get(at);
      });
    if (d.relu)
      for (double& x : expected) x = x < 0 ? 0 : x;
  }
  /// What the pass writes.
  Buffer& result() {
    return pass == ConvolutionPass::Forward ? output : pass == ConvolutionPass::BackwardData ? input : weight;
  }

 private:
  Convolution(const ConvolutionDesc& d, const ConvolutionSizes& count)
      : pass(d.pass),
        input(d.dtype, count.input, 1),
        weight(d.dtype, count.weight, 2),
        bias(d.dtype, count.bias, 3),
        output(d.dtype, count.output, 4) {}
};

inline void expect_same(const ConvolutionDesc& d, const Buffer& actual, const std::vector<double>& expected,
                        double scale = 1) {
  for (int64_t i = 0; i < actual.count(); ++i)
    ASSERT_TRUE(close(d.dtype, actual.get(i), expected[i], scale))
        << i << ": " << actual.get(i) << " for " << expected[i];
}

inline ConvolutionDesc square(int64_t batch, int64_t in, int64_t size, int64_t out, int64_t kernel,
                              int64_t stride, int64_t padding, int64_t groups = 1) {
  ConvolutionDesc d;
  d.batch = batch;
  d.in_channels = in;
  d.out_channels = out;
  d.groups = groups;
  d.input = {size, size, 1};
  d.kernel = {kernel, kernel, 1};
  d.stride = {stride, stride, 1};
  d.padding_begin = d.padding_end = {padding, padding, 0};
  d.set_layout(ConvolutionDesc::Layout::Contiguous, ConvolutionDesc::Layout::Contiguous);
  return d;
}

}  // namespace fl::library::test
