// Gradients that are objects of another language, such as Python's sparse tensors: it adds them up.
#pragma once
#include "flambeau/tensor/tensor.h"

namespace fl {

struct ForeignGradients {
  /// Of a tensor without elements that belongs to an object.
  bool (*is_foreign)(const Tensor& gradient);
  /// a + b, one of which may have elements; b, for a leaf to keep, where a is undefined.
  Tensor (*sum)(const Tensor& a, const Tensor& b);
};
/// Before any gradient is computed.
void install_foreign_gradients(ForeignGradients functions);

/// False for undefined tensors.
bool is_foreign_gradient(const Tensor& gradient);
Tensor sum_of_foreign_gradients(const Tensor& a, const Tensor& b);

}  // namespace fl
