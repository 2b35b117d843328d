#include "flambeau/nn/convolution.h"

#include <cmath>

#include "flambeau/nn/init.h"
#include "flambeau/ops/functions.h"

namespace fl::nn {

static void check_groups(int64_t in, int64_t out, int64_t groups) {
  FL_CHECK(groups > 0, ValueError, "groups must be a positive integer, got {}", groups);
  FL_CHECK(in % groups == 0 && out % groups == 0, ValueError,
           "in and out channels must be divisible by groups, got {} and {} with groups {}", in, out, groups);
}

/// PyTorch's defaults: weight and bias uniform within 1 / sqrt(fan in).
static void reset_convolution(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  const int64_t in = init::fans(weight).in;
  if (!bias.defined() || in == 0) return;
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  init::uniform_(bias, -bound, bound);
}

Conv1dImpl::Conv1dImpl(int64_t in, int64_t out, int64_t kernel, Conv1dOptions options) : options_(options) {
  check_groups(in, out, options.groups);
  weight = register_parameter("weight", empty_tensor({out, in / options.groups, kernel}, DType::Float32));
  bias = register_parameter("bias", options.bias ? empty_tensor({out}, DType::Float32) : Tensor());
  reset_parameters();
}

void Conv1dImpl::reset_parameters() { reset_convolution(weight, bias); }

Tensor Conv1dImpl::forward(const Tensor& x) {
  return conv1d(x, weight, bias, {options_.stride}, {options_.padding}, {options_.dilation}, options_.groups);
}

Conv2dImpl::Conv2dImpl(int64_t in, int64_t out, Pair kernel, Conv2dOptions options) : options_(options) {
  check_groups(in, out, options.groups);
  weight = register_parameter(
      "weight", empty_tensor({out, in / options.groups, kernel.values[0], kernel.values[1]}, DType::Float32));
  bias = register_parameter("bias", options.bias ? empty_tensor({out}, DType::Float32) : Tensor());
  reset_parameters();
}

void Conv2dImpl::reset_parameters() { reset_convolution(weight, bias); }

Tensor Conv2dImpl::forward(const Tensor& x) {
  return conv2d(x, weight, bias, options_.stride, options_.padding, options_.dilation, options_.groups);
}

}  // namespace fl::nn
