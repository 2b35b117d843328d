#include "flambeau/runtime/direct_convolution.h"

#include "flambeau/base/parallel.h"
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

}  // namespace

DirectConvolution::DirectConvolution(const library::ConvolutionDesc& desc, DType dtype, int64_t bias_stride)
    : desc_(desc), dtype_(dtype), bias_stride_(bias_stride), output_(desc.output()) {
  for (int i = 0; i < 3; ++i) dimensions_[i] = dimension(i);
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
}

/// For each position of the result along dimension i: where input, tap and output meet, in growing order.
DirectConvolution::Dimension DirectConvolution::dimension(int i) const {
  const library::ConvolutionDesc& d = desc_;
  Dimension result;
  if (i >= d.spatial) return {{0, 1}, {{0, 0}}};
  const int64_t in_step = d.input_strides[2 + i], tap_step = d.weight_strides[2 + i];
  const int64_t out_step = d.output_strides[2 + i];
  const auto input_at = [&](int64_t out, int64_t tap) {
    return out * d.stride[i] + tap * d.dilation[i] - d.padding_begin[i];
  };
  const auto inside = [&](int64_t in) { return in >= 0 && in < d.input[i]; };
  result.begin.push_back(0);
  const auto close = [&] { result.begin.push_back(static_cast<int64_t>(result.taps.size())); };
  if (d.pass == ConvolutionPass::Forward) {
    for (int64_t out = 0; out < output_[i]; ++out, close())
      for (int64_t tap = 0; tap < d.kernel[i]; ++tap)
        if (const int64_t in = input_at(out, tap); inside(in))
          result.taps.push_back({in * in_step, tap * tap_step});
  } else if (d.pass == ConvolutionPass::BackwardWeights) {
    for (int64_t tap = 0; tap < d.kernel[i]; ++tap, close())
      for (int64_t out = 0; out < output_[i]; ++out)
        if (const int64_t in = input_at(out, tap); inside(in))
          result.taps.push_back({in * in_step, out * out_step});
  } else {
    for (int64_t in = 0; in < d.input[i]; ++in, close())
      for (int64_t tap = 0; tap < d.kernel[i]; ++tap) {
        const int64_t scaled = in - input_at(0, tap), out = scaled / d.stride[i];
        if (scaled >= 0 && scaled % d.stride[i] == 0 && out < output_[i])
          result.taps.push_back({out * out_step, tap * tap_step});
      }
  }
  return result;
}

template <class T, class Sum>
Sum DirectConvolution::element(const T* first, const T* second, const std::array<int64_t, 3>& at) const {
  const auto taps = [&](int i) {
    const Dimension& d = dimensions_[i];
    return std::pair(d.taps.data() + d.begin[at[i]], d.taps.data() + d.begin[at[i] + 1]);
  };
  const auto [begin0, end0] = taps(0);
  const auto [begin1, end1] = taps(1);
  const auto [begin2, end2] = taps(2);
  Sum sum{};
  for (int64_t term = 0; term < terms_; ++term) {
    const T *x = first + term * first_step_, *y = second + term * second_step_;
    for (const Tap* t0 = begin0; t0 != end0; ++t0)
      for (const Tap* t1 = begin1; t1 != end1; ++t1) {
        const T *row_x = x + t0->first + t1->first, *row_y = y + t0->second + t1->second;
        for (const Tap* t2 = begin2; t2 != end2; ++t2)
          sum += widen<T>(row_x[t2->first]) * widen<T>(row_y[t2->second]);
      }
  }
  return sum;
}

template <class T>
void DirectConvolution::sum(const T* first, const T* second, const T* bias, T* result) const {
  const auto &in = desc_.input_strides, &weight = desc_.weight_strides, &out = desc_.output_strides;
  const int64_t in_group = desc_.in_channels / desc_.groups, out_group = desc_.out_channels / desc_.groups;
  const int64_t space = result_sizes_[0] * result_sizes_[1] * result_sizes_[2];
  int64_t products = terms_;
  for (int i = 0; i < 3; ++i)
    products *= static_cast<int64_t>(dimensions_[i].taps.size()) / std::max<int64_t>(1, result_sizes_[i]) + 1;
  const int64_t grain = std::max<int64_t>(1, kGrainProducts / std::max<int64_t>(1, products));
  parallel_for(rows_ * columns_ * space, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / space / columns_, column = i / space % columns_;
      const std::array<int64_t, 3> at = {i % space / result_sizes_[2] / result_sizes_[1],
                                         i % space / result_sizes_[2] % result_sizes_[1],
                                         i % result_sizes_[2]};
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
      SumType<T> sum = element<T, SumType<T>>(x, y, at);
      if (bias) sum += widen<T>(bias[column * bias_stride_]);
      result[row * result_strides_[0] + column * result_strides_[1] + at[0] * result_strides_[2] +
             at[1] * result_strides_[3] + at[2] * result_strides_[4]] = narrow<T>(sum);
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
      sum(static_cast<const T*>(first), static_cast<const T*>(second),
          static_cast<const T*>(desc_.bias ? data.bias : nullptr), static_cast<T*>(result));
  });
}

}  // namespace fl::runtime
