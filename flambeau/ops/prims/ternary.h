// Elementwise primitives of three tensors, selection, conversion and copying.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"where.self(Tensor condition, Tensor self, Tensor other) -> Tensor"> where;
inline constexpr Op<"clamp_min.Tensor(Tensor self, Tensor min) -> Tensor"> clamp_min;
inline constexpr Op<"clamp_max.Tensor(Tensor self, Tensor max) -> Tensor"> clamp_max;
inline constexpr Op<"masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor"> masked_fill;
inline constexpr Op<"lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor"> lerp;
inline constexpr Op<"addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor">
    addcmul;
inline constexpr Op<"addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor">
    addcdiv;
inline constexpr Op<"copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor"> copy;
inline constexpr Op<"fill.Tensor(Tensor self, Tensor value) -> Tensor"> fill;
inline constexpr Op<"clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"> clone;
inline constexpr Op<
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Device? device=None, bool? pin_memory=None, bool "
    "non_blocking=False, MemoryFormat? memory_format=None) -> Tensor">
    _to_copy;
inline constexpr Op<"complex(Tensor real, Tensor imag) -> Tensor"> complex;

}  // namespace fl
