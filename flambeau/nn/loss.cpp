#include "flambeau/nn/loss.h"

#include "flambeau/ops/functions.h"

namespace fl::nn {

static int64_t code(Reduction r) { return static_cast<int64_t>(r); }

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o) {
  return fl::cross_entropy_loss(input, target, o.weight, code(o.reduction), o.ignore_index,
                                o.label_smoothing);
}
Tensor nll_loss(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o) {
  return fl::nll_loss_nd(input, target, o.weight, code(o.reduction), o.ignore_index);
}
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction r) {
  return fl::mse_loss(input, target, code(r));
}
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction r) {
  return fl::l1_loss(input, target, code(r));
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction r, double beta) {
  return fl::smooth_l1_loss(input, target, code(r), beta);
}
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, Reduction r) {
  return fl::binary_cross_entropy(input, target, {}, code(r));
}
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, Reduction r) {
  return fl::binary_cross_entropy_with_logits(input, target, {}, {}, code(r));
}

}  // namespace fl::nn
