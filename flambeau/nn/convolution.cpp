#include "flambeau/nn/convolution.h"

#include <cmath>

#include "flambeau/nn/init.h"
#include "flambeau/ops/functions.h"

namespace fl::nn {

ConvImpl::ConvImpl(int spatial, int64_t in, int64_t out, int64_t kernel, ConvOptions options)
    : spatial_(spatial), options_(options) {
  FL_CHECK(options.groups > 0 && in % options.groups == 0 && out % options.groups == 0, ValueError,
           "expected channels that {} groups divide, got in {}, out {}", options.groups, in, out);
  Sizes sizes{out, in / options.groups};
  for (int d = 0; d < spatial; ++d) sizes.push_back(kernel);
  weight = register_parameter("weight", empty_tensor(sizes, DType::Float32));
  bias = register_parameter("bias", options.bias ? empty_tensor({out}, DType::Float32) : Tensor());
  reset_parameters();
}

void ConvImpl::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const double in = static_cast<double>((weight.numel() / weight.size(0)).expect_int());
  const double bound = in > 0 ? 1 / std::sqrt(in) : 0;
  init::uniform_(bias, -bound, bound);
}

Tensor ConvImpl::forward(const Tensor& x) {
  const auto each = [&](int64_t v) { return Sizes(static_cast<size_t>(spatial_), SymInt(v)); };
  return convolution(x, weight, bias, each(options_.stride), each(options_.padding), each(options_.dilation),
                     false, each(0), options_.groups);
}

}  // namespace fl::nn
