// Reductions of dimensions to one value each.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor">
    sum;
inline constexpr Op<
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor">
    mean;
inline constexpr Op<
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor">
    prod;
inline constexpr Op<"amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"> amax;
inline constexpr Op<"amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"> amin;
inline constexpr Op<"argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"> argmax;
inline constexpr Op<"argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"> argmin;
inline constexpr Op<"max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)">
    max_dim;
inline constexpr Op<"min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)">
    min_dim;
inline constexpr Op<"any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"> any;
inline constexpr Op<"all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"> all;

}  // namespace fl
