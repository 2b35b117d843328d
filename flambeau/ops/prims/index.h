// Elements at positions that tensors of integers give, read and written.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor"> gather;
/// The indices are int64 and of sizes that broadcast; undefined ones stand for whole dimensions.
inline constexpr Op<"_index(Tensor self, Tensor?[] indices) -> Tensor"> _index;
inline constexpr Op<
    "_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor">
    _index_put;
/// mode: "set", "sum", "prod", "amin" or "amax".
inline constexpr Op<"_scatter(Tensor self, int dim, Tensor index, Tensor src, str mode) -> Tensor"> _scatter;
inline constexpr Op<"nonzero(Tensor self) -> Tensor"> nonzero;

}  // namespace fl
