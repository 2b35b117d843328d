// Indexing, scattering and lookup over the primitives of prims/index.h.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"> index;
inline constexpr Op<
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor">
    index_put;
inline constexpr Op<"index_select(Tensor self, int dim, Tensor index) -> Tensor"> index_select;
inline constexpr Op<
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor">
    index_add;
inline constexpr Op<"index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor"> index_copy;
inline constexpr Op<"index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor">
    index_fill;
inline constexpr Op<"scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"> scatter;
inline constexpr Op<"scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor">
    scatter_value;
inline constexpr Op<"scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor">
    scatter_with;
inline constexpr Op<"scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"> scatter_add;
inline constexpr Op<
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
    "include_self=True) -> Tensor">
    scatter_reduce;
inline constexpr Op<
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) "
    "-> Tensor">
    index_reduce;
inline constexpr Op<"put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor"> put;
inline constexpr Op<"nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor">
    nonzero_static;
inline constexpr Op<
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor">
    _unsafe_masked_index;
inline constexpr Op<
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> "
    "Tensor">
    _unsafe_masked_index_put_accumulate;
inline constexpr Op<"take(Tensor self, Tensor index) -> Tensor"> take;
inline constexpr Op<"take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor"> take_along_dim;
inline constexpr Op<"masked_select(Tensor self, Tensor mask) -> Tensor"> masked_select;
inline constexpr Op<"masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor"> masked_scatter;
inline constexpr Op<
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
    "sparse=False) -> Tensor">
    embedding;
inline constexpr Op<
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq) -> Tensor">
    embedding_dense_backward;

}  // namespace fl
