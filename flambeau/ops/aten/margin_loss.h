// Losses by margins between classes, and distances of all pairs.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
    "reduction=1) -> Tensor">
    multi_margin_loss;
inline constexpr Op<"multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor">
    multilabel_margin_loss;
inline constexpr Op<"pdist(Tensor self, float p=2.) -> Tensor"> pdist;

}  // namespace fl
