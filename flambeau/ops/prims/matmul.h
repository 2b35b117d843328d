// Matrix products.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"mm(Tensor self, Tensor mat2) -> Tensor"> mm;
inline constexpr Op<"bmm(Tensor self, Tensor mat2) -> Tensor"> bmm;

}  // namespace fl
