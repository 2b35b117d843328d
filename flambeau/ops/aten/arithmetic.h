// Elementwise composites: arithmetic, predicates, conversions.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"square(Tensor self) -> Tensor"> square;
inline constexpr Op<"frac(Tensor self) -> Tensor"> frac;
inline constexpr Op<"round.decimals(Tensor self, *, int decimals) -> Tensor"> round_decimals;
inline constexpr Op<"div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor"> div_mode;
inline constexpr Op<"rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"> rsub;
inline constexpr Op<"pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor"> pow;
inline constexpr Op<"angle(Tensor self) -> Tensor"> angle;
inline constexpr Op<"logit(Tensor self, float? eps=None) -> Tensor"> logit;
inline constexpr Op<"positive(Tensor(a) self) -> Tensor(a)"> positive;
inline constexpr Op<"conj(Tensor(a) self) -> Tensor(a)"> conj;
inline constexpr Op<"real(Tensor(a) self) -> Tensor(a)"> real;
inline constexpr Op<"imag(Tensor(a) self) -> Tensor(a)"> imag;
inline constexpr Op<
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor">
    nan_to_num;
inline constexpr Op<"deg2rad(Tensor self) -> Tensor"> deg2rad;
inline constexpr Op<"rad2deg(Tensor self) -> Tensor"> rad2deg;
inline constexpr Op<"sinc(Tensor self) -> Tensor"> sinc;
inline constexpr Op<"isposinf(Tensor self) -> Tensor"> isposinf;
inline constexpr Op<"isneginf(Tensor self) -> Tensor"> isneginf;
inline constexpr Op<"isreal(Tensor self) -> Tensor"> isreal;
inline constexpr Op<"logaddexp2(Tensor self, Tensor other) -> Tensor"> logaddexp2;
inline constexpr Op<"clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor"> clamp;
inline constexpr Op<"clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"> clamp_tensor;
inline constexpr Op<
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor">
    isclose;
inline constexpr Op<"zero(Tensor self) -> Tensor"> zero;
inline constexpr Op<
    "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
    "memory_format=None) -> Tensor(a)">
    to;
inline constexpr Op<"contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)"> contiguous;
inline constexpr Op<"type_as(Tensor self, Tensor other) -> Tensor"> type_as;

inline constexpr Op<"polygamma(int n, Tensor self) -> Tensor"> polygamma;

}  // namespace fl
