// Reductions that are made of others: means, variances, norms, and the forms of sums and extremes.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"sum(Tensor self, *, ScalarType? dtype=None) -> Tensor"> sum_all;
inline constexpr Op<"prod(Tensor self, *, ScalarType? dtype=None) -> Tensor"> prod_all;
inline constexpr Op<"any(Tensor self) -> Tensor"> any_all;
inline constexpr Op<"any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"> any_dim;
inline constexpr Op<"all(Tensor self) -> Tensor"> all_all;
inline constexpr Op<"all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"> all_dim;
inline constexpr Op<"max(Tensor self) -> Tensor"> max_all;
inline constexpr Op<"min(Tensor self) -> Tensor"> min_all;
inline constexpr Op<"max.other(Tensor self, Tensor other) -> Tensor"> max_other;
inline constexpr Op<"min.other(Tensor self, Tensor other) -> Tensor"> min_other;
inline constexpr Op<"aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)">
    aminmax;
inline constexpr Op<"mean(Tensor self, *, ScalarType? dtype=None) -> Tensor"> mean_all;
inline constexpr Op<
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor">
    nansum;
inline constexpr Op<
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor">
    nanmean;
inline constexpr Op<"count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor"> count_nonzero;
inline constexpr Op<"count_nonzero(Tensor self, int? dim=None) -> Tensor"> count_nonzero_dim;
inline constexpr Op<
    "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
    "Tensor">
    var;
inline constexpr Op<"var(Tensor self, bool unbiased=True) -> Tensor"> var_all;
inline constexpr Op<"var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor">
    var_dim;
inline constexpr Op<
    "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
    "Tensor">
    std_dev;
inline constexpr Op<"std(Tensor self, bool unbiased=True) -> Tensor"> std_all;
inline constexpr Op<"std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor">
    std_dim;
inline constexpr Op<
    "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
    "(Tensor, Tensor)">
    var_mean;
inline constexpr Op<
    "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)">
    var_mean_dim;
inline constexpr Op<"var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)"> var_mean_all;
inline constexpr Op<
    "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
    "(Tensor, Tensor)">
    std_mean;
inline constexpr Op<
    "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)">
    std_mean_dim;
inline constexpr Op<"std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)"> std_mean_all;
inline constexpr Op<"logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor"> logsumexp;
inline constexpr Op<
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
    "dtype=None) -> Tensor">
    vector_norm;
inline constexpr Op<"norm.Scalar(Tensor self, Scalar p=2) -> Tensor"> norm;
inline constexpr Op<"norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor">
    norm_dim;
inline constexpr Op<"dist(Tensor self, Tensor other, Scalar p=2) -> Tensor"> dist;

}  // namespace fl
