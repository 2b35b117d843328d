// Elementwise primitives of one tensor.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"neg(Tensor self) -> Tensor"> neg;
inline constexpr Op<"abs(Tensor self) -> Tensor"> abs;
inline constexpr Op<"sign(Tensor self) -> Tensor"> sign;
inline constexpr Op<"sgn(Tensor self) -> Tensor"> sgn;
inline constexpr Op<"ceil(Tensor self) -> Tensor"> ceil;
inline constexpr Op<"floor(Tensor self) -> Tensor"> floor;
inline constexpr Op<"round(Tensor self) -> Tensor"> round;
inline constexpr Op<"trunc(Tensor self) -> Tensor"> trunc;
inline constexpr Op<"sqrt(Tensor self) -> Tensor"> sqrt;
inline constexpr Op<"rsqrt(Tensor self) -> Tensor"> rsqrt;
inline constexpr Op<"reciprocal(Tensor self) -> Tensor"> reciprocal;
inline constexpr Op<"exp(Tensor self) -> Tensor"> exp;
inline constexpr Op<"exp2(Tensor self) -> Tensor"> exp2;
inline constexpr Op<"expm1(Tensor self) -> Tensor"> expm1;
inline constexpr Op<"log(Tensor self) -> Tensor"> log;
inline constexpr Op<"log2(Tensor self) -> Tensor"> log2;
inline constexpr Op<"log10(Tensor self) -> Tensor"> log10;
inline constexpr Op<"log1p(Tensor self) -> Tensor"> log1p;
inline constexpr Op<"sin(Tensor self) -> Tensor"> sin;
inline constexpr Op<"cos(Tensor self) -> Tensor"> cos;
inline constexpr Op<"tan(Tensor self) -> Tensor"> tan;
inline constexpr Op<"asin(Tensor self) -> Tensor"> asin;
inline constexpr Op<"acos(Tensor self) -> Tensor"> acos;
inline constexpr Op<"atan(Tensor self) -> Tensor"> atan;
inline constexpr Op<"sinh(Tensor self) -> Tensor"> sinh;
inline constexpr Op<"cosh(Tensor self) -> Tensor"> cosh;
inline constexpr Op<"tanh(Tensor self) -> Tensor"> tanh;
inline constexpr Op<"asinh(Tensor self) -> Tensor"> asinh;
inline constexpr Op<"acosh(Tensor self) -> Tensor"> acosh;
inline constexpr Op<"atanh(Tensor self) -> Tensor"> atanh;
inline constexpr Op<"erf(Tensor self) -> Tensor"> erf;
inline constexpr Op<"erfc(Tensor self) -> Tensor"> erfc;
inline constexpr Op<"erfinv(Tensor self) -> Tensor"> erfinv;
inline constexpr Op<"lgamma(Tensor self) -> Tensor"> lgamma;
inline constexpr Op<"digamma(Tensor self) -> Tensor"> digamma;
inline constexpr Op<"sigmoid(Tensor self) -> Tensor"> sigmoid;
inline constexpr Op<"logical_not(Tensor self) -> Tensor"> logical_not;
inline constexpr Op<"bitwise_not(Tensor self) -> Tensor"> bitwise_not;
inline constexpr Op<"signbit(Tensor self) -> Tensor"> signbit;
inline constexpr Op<"isnan(Tensor self) -> Tensor"> isnan;
inline constexpr Op<"isinf(Tensor self) -> Tensor"> isinf;
inline constexpr Op<"isfinite(Tensor self) -> Tensor"> isfinite;
inline constexpr Op<"conj_physical(Tensor self) -> Tensor"> conj_physical;

}  // namespace fl
