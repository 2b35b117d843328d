// Primitives that move elements: joining, padding, mirroring, triangles.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"cat(Tensor[] tensors, int dim=0) -> Tensor"> cat;
inline constexpr Op<"constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor"> constant_pad_nd;
inline constexpr Op<"_reflection_pad(Tensor self, SymInt[] padding) -> Tensor"> _reflection_pad;
inline constexpr Op<"_replication_pad(Tensor self, SymInt[] padding) -> Tensor"> _replication_pad;
inline constexpr Op<"_reflection_pad_add(Tensor self, Tensor src, SymInt[] padding) -> Tensor">
    _reflection_pad_add;
inline constexpr Op<"_replication_pad_add(Tensor self, Tensor src, SymInt[] padding) -> Tensor">
    _replication_pad_add;
inline constexpr Op<"flip(Tensor self, int[] dims) -> Tensor"> flip;
inline constexpr Op<"roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor"> roll;
inline constexpr Op<"repeat(Tensor self, SymInt[] repeats) -> Tensor"> repeat;
inline constexpr Op<"tril(Tensor self, SymInt diagonal=0) -> Tensor"> tril;
inline constexpr Op<"triu(Tensor self, SymInt diagonal=0) -> Tensor"> triu;

}  // namespace fl
