#include "flambeau/nn/pooling.h"

#include "flambeau/ops/functions.h"

namespace fl::nn {

Tensor MaxPool2dImpl::forward(const Tensor& x) {
  return max_pool2d(x, kernel_, options_.stride.value_or(kernel_), options_.padding, options_.dilation,
                    options_.ceil_mode);
}

Tensor AvgPool2dImpl::forward(const Tensor& x) {
  return avg_pool2d(x, kernel_, options_.stride.value_or(kernel_), options_.padding, options_.ceil_mode,
                    options_.count_include_pad, options_.divisor_override);
}

Tensor AdaptiveAvgPool2dImpl::forward(const Tensor& x) { return adaptive_avg_pool2d(x, output_); }

}  // namespace fl::nn
