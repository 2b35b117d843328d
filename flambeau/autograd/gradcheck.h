// Gradients against finite differences.
#pragma once
#include <functional>

#include "flambeau/op/grad_ctx.h"

namespace fl {

struct GradcheckOptions {
  double step = 1e-6;
  double absolute = 1e-5, relative = 1e-3;
  bool undefined_grads = true;  ///< also: an output's missing gradient counts as zero
};
using DifferentiableFn = std::function<Tensors(const Tensors&)>;

/// Compares the Jacobian that backward gives with central differences, for every float64 input that requires
/// grad. The inputs' elements must lie apart in memory. Raises RuntimeError with the first pair of numbers
/// that differ. Complex inputs and outputs raise NotImplementedError.
void gradcheck(const DifferentiableFn& f, const Tensors& inputs, const GradcheckOptions& options = {});
/// The same for the gradient of f as a function of the inputs and of the outputs' gradients.
void gradgradcheck(const DifferentiableFn& f, const Tensors& inputs, const GradcheckOptions& options = {});

}  // namespace fl
