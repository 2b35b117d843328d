// What losses share.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

enum class LossReduction : int64_t { None, Mean, Sum };
/// Raises ValueError on another number.
LossReduction loss_reduction(int64_t reduction);
/// The losses themselves, their mean or their sum.
Tensor reduce_loss(const Tensor& losses, int64_t reduction);
/// The gradient by each of `count` losses (all of them equally), from the gradient by their reduction.
Tensor loss_slope(const Tensor& g, int64_t reduction, SymInt count);

}  // namespace fl
