// Elementwise primitives of two tensors. A number may stand in a tensor's place.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"> add;
inline constexpr Op<"sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"> sub;
inline constexpr Op<"mul.Tensor(Tensor self, Tensor other) -> Tensor"> mul;
inline constexpr Op<"div.Tensor(Tensor self, Tensor other) -> Tensor"> div;
inline constexpr Op<"_div_trunc(Tensor self, Tensor other) -> Tensor"> _div_trunc;
inline constexpr Op<"_div_floor(Tensor self, Tensor other) -> Tensor"> _div_floor;
inline constexpr Op<"floor_divide(Tensor self, Tensor other) -> Tensor"> floor_divide;
inline constexpr Op<"remainder.Tensor(Tensor self, Tensor other) -> Tensor"> remainder;
inline constexpr Op<"fmod.Tensor(Tensor self, Tensor other) -> Tensor"> fmod;
inline constexpr Op<"_pow(Tensor self, Tensor exponent) -> Tensor"> _pow;
inline constexpr Op<"atan2(Tensor self, Tensor other) -> Tensor"> atan2;
inline constexpr Op<"hypot(Tensor self, Tensor other) -> Tensor"> hypot;
inline constexpr Op<"nextafter(Tensor self, Tensor other) -> Tensor"> nextafter;
inline constexpr Op<"maximum(Tensor self, Tensor other) -> Tensor"> maximum;
inline constexpr Op<"minimum(Tensor self, Tensor other) -> Tensor"> minimum;
inline constexpr Op<"fmax(Tensor self, Tensor other) -> Tensor"> fmax;
inline constexpr Op<"fmin(Tensor self, Tensor other) -> Tensor"> fmin;
inline constexpr Op<"copysign.Tensor(Tensor self, Tensor other) -> Tensor"> copysign;
inline constexpr Op<"eq.Tensor(Tensor self, Tensor other) -> Tensor"> eq;
inline constexpr Op<"ne.Tensor(Tensor self, Tensor other) -> Tensor"> ne;
inline constexpr Op<"lt.Tensor(Tensor self, Tensor other) -> Tensor"> lt;
inline constexpr Op<"le.Tensor(Tensor self, Tensor other) -> Tensor"> le;
inline constexpr Op<"gt.Tensor(Tensor self, Tensor other) -> Tensor"> gt;
inline constexpr Op<"ge.Tensor(Tensor self, Tensor other) -> Tensor"> ge;
inline constexpr Op<"logical_and(Tensor self, Tensor other) -> Tensor"> logical_and;
inline constexpr Op<"logical_or(Tensor self, Tensor other) -> Tensor"> logical_or;
inline constexpr Op<"logical_xor(Tensor self, Tensor other) -> Tensor"> logical_xor;
inline constexpr Op<"bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor"> bitwise_and;
inline constexpr Op<"bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor"> bitwise_or;
inline constexpr Op<"bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor"> bitwise_xor;
inline constexpr Op<"bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor"> bitwise_left_shift;
inline constexpr Op<"bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor"> bitwise_right_shift;
inline constexpr Op<"xlogy.Tensor(Tensor self, Tensor other) -> Tensor"> xlogy;
inline constexpr Op<"logaddexp(Tensor self, Tensor other) -> Tensor"> logaddexp;
inline constexpr Op<"heaviside(Tensor self, Tensor values) -> Tensor"> heaviside;

inline constexpr Op<"special_xlog1py(Tensor self, Tensor other) -> Tensor"> xlog1py;

}  // namespace fl
