#include "flambeau/runtime/direct_convolution.h"

#include <algorithm>
#include <span>

#include "flambeau/base/parallel.h"
#include "flambeau/runtime/staging.h"
#include "flambeau/tensor/element.h"

namespace fl::runtime {
namespace {

using library::ConvolutionPass;

constexpr int64_t kGrainProducts = 1 << 14;

/// What products of T are summed in.
template <class T>
using SumType =
    std::conditional_t<is_complex_type<T>::value, std::complex<double>,
                       std::conditional_t<std::is_integral_v<T>, uint64_t, double>>;  // integers wrap around

template <class T>
SumType<T> widen(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(static_cast<int64_t>(x));
  else
    return convert_element<SumType<T>>(x);
}

template <class T>
T narrow(SumType<T> x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(x);
  else
    return convert_element<T>(x);
}

/// The same convolution with three spatial dimensions, of which the first have size 1.
library::ConvolutionDesc with_three_dimensions(const library::ConvolutionDesc& desc) {
  library::ConvolutionDesc d = desc;
  const int shift = 3 - desc.spatial;
  d.spatial = 3;
  for (int i = 0; i < 3; ++i) {
    const bool added = i < shift;
    const int from = added ? 0 : i - shift;
    d.input[i] = added ? 1 : desc.input[from];
    d.kernel[i] = added ? 1 : desc.kernel[from];
    d.stride[i] = added ? 1 : desc.stride[from];
    d.dilation[i] = added ? 1 : desc.dilation[from];
    d.padding_begin[i] = added ? 0 : desc.padding_begin[from];
    d.padding_end[i] = added ? 0 : desc.padding_end[from];
    d.input_strides[2 + i] = added ? 0 : desc.input_strides[2 + from];
    d.weight_strides[2 + i] = added ? 0 : desc.weight_strides[2 + from];
    d.output_strides[2 + i] = added ? 0 : desc.output_strides[2 + from];
  }
  return d;
}

}  // namespace

DirectConvolution::DirectConvolution(const library::ConvolutionDesc& given, DType dtype, int64_t bias_stride)
    : desc_(with_three_dimensions(given)), dtype_(dtype), bias_stride_(bias_stride), output_(desc_.output()) {
  const library::ConvolutionDesc& desc = desc_;
  const auto &in = desc.input_strides, &weight = desc.weight_strides, &out = desc.output_strides;
  switch (desc.pass) {
    case ConvolutionPass::Forward:
      rows_ = desc.batch, columns_ = desc.out_channels, terms_ = desc.in_channels / desc.groups;
      result_sizes_ = output_, result_strides_ = out;
      first_step_ = in[1], second_step_ = weight[1];
      break;
    case ConvolutionPass::BackwardData:
      rows_ = desc.batch, columns_ = desc.in_channels, terms_ = desc.out_channels / desc.groups;
      result_sizes_ = desc.input, result_strides_ = in;
      first_step_ = out[1], second_step_ = weight[0];
      break;
    case ConvolutionPass::BackwardWeights:
      rows_ = desc.out_channels, columns_ = desc.in_channels / desc.groups, terms_ = desc.batch;
      result_sizes_ = desc.kernel, result_strides_ = weight;
      first_step_ = in[0], second_step_ = out[0];
      break;
  }
  dimensions_ = {dimension(0), dimension(1)};
  runs_ = runs_along(2);
}

/// One run for each tap, in growing order: output position o and tap t meet at input position
/// o stride + t dilation - padding.
std::vector<DirectConvolution::Run> DirectConvolution::runs_along(int i) const {
  const library::ConvolutionDesc& d = desc_;
  const int64_t in_step = d.input_strides[2 + i], tap_step = d.weight_strides[2 + i];
  const int64_t out_step = d.output_strides[2 + i], stride = d.stride[i];
  std::vector<Run> runs;
  for (int64_t tap = 0; tap < d.kernel[i]; ++tap) {
    const int64_t start = tap * d.dilation[i] - d.padding_begin[i];  // of the input, for output position 0
    const int64_t begin = start >= 0 ? 0 : (-start + stride - 1) / stride;
    const int64_t end =
        start >= d.input[i] ? 0 : std::min(output_[i], (d.input[i] - start + stride - 1) / stride);
    if (begin >= end) continue;
    const int64_t in = begin * stride + start;
    const Line input{in * in_step, stride * in_step}, output{begin * out_step, out_step};
    const Line weight{tap * tap_step, 0};
    switch (d.pass) {
      case ConvolutionPass::Forward:
        runs.push_back({{begin, 1}, input, weight, end - begin});
        break;
      case ConvolutionPass::BackwardData:
        runs.push_back({{in, stride}, output, weight, end - begin});
        break;
      case ConvolutionPass::BackwardWeights:
        runs.push_back({{tap, 0}, input, output, end - begin});
        break;
    }
  }
  return runs;
}

DirectConvolution::Dimension DirectConvolution::dimension(int i) const {
  std::vector<std::vector<Tap>> taps(result_sizes_[i]);
  for (const Run& run : runs_along(i))
    for (int64_t j = 0; j < run.count; ++j)
      taps[run.result.at + j * run.result.step].push_back(
          {run.first.at + j * run.first.step, run.second.at + j * run.second.step});
  Dimension result{{0}, {}};
  for (const std::vector<Tap>& some : taps) {
    result.taps.insert(result.taps.end(), some.begin(), some.end());
    result.begin.push_back(static_cast<int64_t>(result.taps.size()));
  }
  return result;
}

/// Adds the products of a line of the result along the last dimension.
template <class T, class Sum>
void DirectConvolution::sum_line(const T* first, const T* second, int64_t at0, int64_t at1, Sum* sums) const {
  const auto add = [&](const T* x, const T* y) {
    for (const Run& run : runs_) {
      const T *a = x + run.first.at, *b = y + run.second.at;
      Sum* to = sums + run.result.at;
      if (run.result.step == 0) {
        Sum sum = *to;
        for (int64_t j = 0; j < run.count; ++j)
          sum += widen<T>(a[j * run.first.step]) * widen<T>(b[j * run.second.step]);
        *to = sum;
      } else {
        const Sum factor = widen<T>(*b);
        for (int64_t j = 0; j < run.count; ++j)
          to[j * run.result.step] += widen<T>(a[j * run.first.step]) * factor;
      }
    }
  };
  const auto taps = [](const Dimension& d, int64_t at) {
    return std::span(d.taps).subspan(d.begin[at], d.begin[at + 1] - d.begin[at]);
  };
  for (int64_t term = 0; term < terms_; ++term)
    for (const Tap& t0 : taps(dimensions_[0], at0))
      for (const Tap& t1 : taps(dimensions_[1], at1))
        add(first + term * first_step_ + t0.first + t1.first,
            second + term * second_step_ + t0.second + t1.second);
}

template <class T>
void DirectConvolution::sum_all(const T* first, const T* second, const T* bias, T* result) const {
  using Sum = SumType<T>;
  const auto &in = desc_.input_strides, &weight = desc_.weight_strides, &out = desc_.output_strides;
  const int64_t in_group = desc_.in_channels / desc_.groups, out_group = desc_.out_channels / desc_.groups;
  const int64_t lines = result_sizes_[0] * result_sizes_[1], length = result_sizes_[2];
  int64_t products = std::max<int64_t>(1, terms_);  // of a line, about
  for (const Run& run : runs_) products += terms_ * run.count;
  parallel_for(rows_ * columns_ * lines, std::max<int64_t>(1, kGrainProducts / products),
               [&](int64_t begin, int64_t end) {
                 Sum* const sums =
                     reinterpret_cast<Sum*>(staging_memory(length * static_cast<int64_t>(sizeof(Sum))));
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t row = i / lines / columns_, column = i / lines % columns_;
                   const int64_t at0 = i % lines / result_sizes_[1], at1 = i % lines % result_sizes_[1];
                   const T *x = first, *y = second;
                   switch (desc_.pass) {
                     case ConvolutionPass::Forward:
                       x += row * in[0] + column / out_group * in_group * in[1];
                       y += column * weight[0];
                       break;
                     case ConvolutionPass::BackwardData:
                       x += row * out[0] + column / in_group * out_group * out[1];
                       y += column / in_group * out_group * weight[0] + column % in_group * weight[1];
                       break;
                     case ConvolutionPass::BackwardWeights:
                       x += (row / out_group * in_group + column) * in[1];
                       y += row * out[1];
                       break;
                   }
                   std::fill_n(sums, length, bias ? widen<T>(bias[column * bias_stride_]) : Sum{});
                   sum_line(x, y, at0, at1, sums);
                   T* const line = result + row * result_strides_[0] + column * result_strides_[1] +
                                   at0 * result_strides_[2] + at1 * result_strides_[3];
                   for (int64_t j = 0; j < length; ++j) line[j * result_strides_[4]] = narrow<T>(sums[j]);
                 }
               });
}

void DirectConvolution::run(const library::ConvolutionData& data) const {
  const bool forward = desc_.pass == ConvolutionPass::Forward;
  const bool gradient = desc_.pass == ConvolutionPass::BackwardData;
  const void* first = gradient ? data.output : data.input;
  const void* second = forward || gradient ? data.weight : data.output;
  void* result = const_cast<void*>(forward ? data.output : gradient ? data.input : data.weight);
  visit_dtype(dtype_, [&]<class T>(T*) {
    if constexpr (std::is_same_v<T, bool>)
      FL_RAISE(NotImplementedError, "convolutions of bool tensors");
    else
      sum_all(static_cast<const T*>(first), static_cast<const T*>(second),
              static_cast<const T*>(desc_.bias ? data.bias : nullptr), static_cast<T*>(result));
  });
}

}  // namespace fl::runtime
