// Order statistics over sorting: quantiles, medians that skip nan, the most frequent element.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> "
    "Tensor">
    quantile;
inline constexpr Op<
    "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
    "interpolation='linear') -> Tensor">
    quantile_at;
inline constexpr Op<
    "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> "
    "Tensor">
    nanquantile;
inline constexpr Op<
    "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
    "interpolation='linear') -> Tensor">
    nanquantile_at;
inline constexpr Op<"nanmedian(Tensor self) -> Tensor"> nanmedian;
inline constexpr Op<
    "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)">
    nanmedian_dim;
inline constexpr Op<"mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)">
    mode;

}  // namespace fl
