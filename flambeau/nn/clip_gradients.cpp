#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/observed_grad.h"
#include "flambeau/nn/scheduler.h"
#include "flambeau/ops/functions.h"

namespace fl::optim {

static Tensors gradients_of(const Tensors& parameters) {
  Tensors gradients;
  for (const Tensor& p : parameters)
    if (const Tensor g = observed_grad(p); g.defined()) gradients.push_back(g);
  return gradients;
}

Tensor clip_grad_norm_(const Tensors& parameters, double max_norm, double norm_type) {
  FL_CHECK(norm_type > 0, ValueError, "expected a norm_type above 0, got {}", norm_type);
  NoGradGuard no_grad;
  const Tensors gradients = gradients_of(parameters);
  if (gradients.empty()) return zeros({});
  Tensors norms;
  for (const Tensor& g : gradients) norms.push_back(vector_norm(g, norm_type));
  const Tensor total = vector_norm(stack(norms), norm_type);
  const Tensor factor = clamp(mul(reciprocal(add(total, 1e-6)), max_norm), std::nullopt, Scalar(1.0));
  for (const Tensor& g : gradients) mul.in_place(g, factor);
  return total;
}

void clip_grad_value_(const Tensors& parameters, double limit) {
  NoGradGuard no_grad;
  for (const Tensor& g : gradients_of(parameters)) clamp.in_place(g, Scalar(-limit), Scalar(limit));
}

}  // namespace fl::optim
