// Numbers that a graph computes.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"_as_number(Tensor self) -> Tensor"> _as_number;

}  // namespace fl
