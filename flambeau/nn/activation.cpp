#include "flambeau/nn/activation.h"

#include "flambeau/ops/functions.h"

namespace fl::nn {

Tensor ReLUImpl::forward(const Tensor& x) { return relu(x); }
Tensor SigmoidImpl::forward(const Tensor& x) { return sigmoid(x); }
Tensor TanhImpl::forward(const Tensor& x) { return tanh(x); }
Tensor SiLUImpl::forward(const Tensor& x) { return silu(x); }
Tensor ELUImpl::forward(const Tensor& x) { return elu(x); }
Tensor SELUImpl::forward(const Tensor& x) { return selu(x); }
Tensor MishImpl::forward(const Tensor& x) { return mish(x); }
Tensor SoftplusImpl::forward(const Tensor& x) { return softplus(x); }
Tensor HardswishImpl::forward(const Tensor& x) { return hardswish(x); }
Tensor GELUImpl::forward(const Tensor& x) { return gelu(x, approximate_); }
Tensor LeakyReLUImpl::forward(const Tensor& x) { return leaky_relu(x, slope_); }
Tensor SoftmaxImpl::forward(const Tensor& x) { return softmax(x, dim_); }

}  // namespace fl::nn
