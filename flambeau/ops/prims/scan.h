// Running sums, products and extremes along a dimension.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"> cumsum;
inline constexpr Op<"cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"> cumprod;
inline constexpr Op<"cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)"> cummax;
inline constexpr Op<"cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)"> cummin;
inline constexpr Op<"logcumsumexp(Tensor self, int dim) -> Tensor"> logcumsumexp;

}  // namespace fl
