// Division with a remainder as the kernels do it: integers are not checked for 0.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"_remainder(Tensor self, Tensor other) -> Tensor"> _remainder;
inline constexpr Op<"_fmod(Tensor self, Tensor other) -> Tensor"> _fmod;

/// Raises RuntimeError where integers are divided by a tensor that has a 0 among its elements now.
void check_divisor(const Tensor& self, const Tensor& other);

}  // namespace fl
