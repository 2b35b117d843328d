// Views as tensors of their own memory: the *_copy operators.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"alias_copy(Tensor self) -> Tensor"> alias_copy;
inline constexpr Op<"detach_copy(Tensor self) -> Tensor"> detach_copy;
inline constexpr Op<
    "as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor">
    as_strided_copy;
inline constexpr Op<"diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor">
    diagonal_copy;
inline constexpr Op<"expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor"> expand_copy;
inline constexpr Op<"narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor"> narrow_copy;
inline constexpr Op<"permute_copy(Tensor self, int[] dims) -> Tensor"> permute_copy;
inline constexpr Op<"transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor"> transpose_copy;
inline constexpr Op<"t_copy(Tensor self) -> Tensor"> t_copy;
inline constexpr Op<"select_copy.int(Tensor self, int dim, SymInt index) -> Tensor"> select_copy;
inline constexpr Op<
    "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
    "Tensor">
    slice_copy;
inline constexpr Op<"squeeze_copy(Tensor self) -> Tensor"> squeeze_copy;
inline constexpr Op<"squeeze_copy.dim(Tensor self, int dim) -> Tensor"> squeeze_copy_dim;
inline constexpr Op<"squeeze_copy.dims(Tensor self, int[] dim) -> Tensor"> squeeze_copy_dims;
inline constexpr Op<"unsqueeze_copy(Tensor self, int dim) -> Tensor"> unsqueeze_copy;
inline constexpr Op<"unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor"> unfold_copy;
inline constexpr Op<"view_copy(Tensor self, SymInt[] size) -> Tensor"> view_copy;
inline constexpr Op<"view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor"> view_copy_dtype;
inline constexpr Op<"view_as_real_copy(Tensor self) -> Tensor"> view_as_real_copy;
inline constexpr Op<"view_as_complex_copy(Tensor self) -> Tensor"> view_as_complex_copy;
inline constexpr Op<"split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]"> split_copy;
inline constexpr Op<"split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]">
    split_with_sizes_copy;
inline constexpr Op<"unbind_copy.int(Tensor self, int dim=0) -> Tensor[]"> unbind_copy;
inline constexpr Op<"unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]"> unsafe_chunk;
inline constexpr Op<"unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]">
    unsafe_split;
inline constexpr Op<"unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]">
    unsafe_split_with_sizes;

}  // namespace fl
