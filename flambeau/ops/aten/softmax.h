// Softmax and its logarithm.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"_softmax(Tensor self, int dim, bool half_to_float) -> Tensor"> _softmax;
inline constexpr Op<"_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor"> _log_softmax;
inline constexpr Op<"_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"> _safe_softmax;
inline constexpr Op<"softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"> softmax;
inline constexpr Op<"log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"> log_softmax;

}  // namespace fl
