// Counts: by equal intervals, by given ones, of distinct elements.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor"> histc;
inline constexpr Op<
    "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor "
    "hist, Tensor bin_edges)">
    histogram;
inline constexpr Op<
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool "
    "density=False) -> (Tensor hist, Tensor bin_edges)">
    histogram_by_count;
inline constexpr Op<
    "histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> "
    "(Tensor hist, Tensor[] bin_edges)">
    histogramdd_by_counts;
inline constexpr Op<
    "histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool "
    "density=False) -> (Tensor hist, Tensor[] bin_edges)">
    histogramdd_by_count;
inline constexpr Op<
    "histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool "
    "density=False) -> (Tensor hist, Tensor[] bin_edges)">
    histogramdd;
inline constexpr Op<
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
    "(Tensor, Tensor, Tensor)">
    unique_consecutive;
inline constexpr Op<
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
    "return_counts=False) -> (Tensor, Tensor, Tensor)">
    unique_dim;

}  // namespace fl
