// Sorting, and what follows from it.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
    "indices)">
    stable_sort;
inline constexpr Op<"sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)">
    sort;
inline constexpr Op<"argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor"> argsort;
inline constexpr Op<
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor">
    stable_argsort;
inline constexpr Op<"msort(Tensor self) -> Tensor"> msort;
inline constexpr Op<
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
    "indices)">
    topk;
inline constexpr Op<
    "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)">
    kthvalue;
inline constexpr Op<"median(Tensor self) -> Tensor"> median;
inline constexpr Op<"median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)">
    median_dim;
inline constexpr Op<
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
    "(Tensor, "
    "Tensor, Tensor)">
    unique;
inline constexpr Op<
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
    "str? "
    "side=None, Tensor? sorter=None) -> Tensor">
    searchsorted;
/// bits: the sequences are shorter than 2^bits.
inline constexpr Op<"_search(Tensor sequence, Tensor self, bool out_int32, bool right, int bits) -> Tensor">
    _search;
inline constexpr Op<
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor">
    bucketize;
inline constexpr Op<"bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor"> bincount;

}  // namespace fl
