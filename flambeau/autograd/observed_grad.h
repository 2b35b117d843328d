#pragma once
#include "flambeau/tensor/tensor.h"

namespace fl {

/// t.grad(), for programs: what is traced depends on whether there is one.
Tensor observed_grad(const Tensor& t);

}  // namespace fl
