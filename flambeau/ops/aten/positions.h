// Positions of a flattened tensor as positions in its dimensions.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"unravel_index(Tensor indices, SymInt[] shape) -> Tensor[]"> unravel_index;

}  // namespace fl
