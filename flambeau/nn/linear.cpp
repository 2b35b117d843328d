#include "flambeau/nn/linear.h"

#include <cmath>

#include "flambeau/autograd/autograd.h"
#include "flambeau/nn/init.h"
#include "flambeau/ops/functions.h"

namespace fl::nn {

LinearImpl::LinearImpl(int64_t in, int64_t out, LinearOptions options) {
  FL_CHECK(in >= 0 && out >= 0, ValueError, "expected sizes of 0 or more, got in {}, out {}", in, out);
  weight = register_parameter("weight", empty_tensor({out, in}, DType::Float32));
  bias = register_parameter("bias", options.bias ? empty_tensor({out}, DType::Float32) : Tensor());
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  const double in = static_cast<double>(weight.size(1).expect_int());
  const double bound = in > 0 ? 1 / std::sqrt(in) : 0;
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

Tensor LinearImpl::forward(const Tensor& x) { return linear(x, weight, bias); }

EmbeddingImpl::EmbeddingImpl(int64_t count, int64_t dim, EmbeddingOptions options) {
  weight = register_parameter("weight", empty_tensor({count, dim}, DType::Float32));
  if (options.padding_idx) {
    const int64_t i = *options.padding_idx;
    FL_CHECK(i >= -count && i < count, ValueError, "padding_idx must lie in [-{0}, {0}), got {1}", count, i);
    padding_idx_ = i < 0 ? i + count : i;
  }
  reset_parameters();
}

void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  NoGradGuard no_grad;
  if (padding_idx_ >= 0) init::zeros_(select(weight, 0, padding_idx_));
}

Tensor EmbeddingImpl::forward(const Tensor& indices) { return embedding(weight, indices, padding_idx_); }

Tensor FlattenImpl::forward(const Tensor& x) { return flatten(x, start_, end_); }

DropoutImpl::DropoutImpl(double p) : p_(p) {
  FL_CHECK(p >= 0 && p <= 1, ValueError, "dropout probability has to be between 0 and 1, but got {}", p);
}

Tensor DropoutImpl::forward(const Tensor& x) { return dropout(x, p_, is_training()); }

}  // namespace fl::nn
