// Numbers taken apart: divisors, exponents, powers in float64.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"gcd(Tensor self, Tensor other) -> Tensor"> gcd;
inline constexpr Op<"lcm(Tensor self, Tensor other) -> Tensor"> lcm;
inline constexpr Op<"ldexp.Tensor(Tensor self, Tensor other) -> Tensor"> ldexp;
inline constexpr Op<"frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)"> frexp;
inline constexpr Op<"float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor"> float_power;

}  // namespace fl
