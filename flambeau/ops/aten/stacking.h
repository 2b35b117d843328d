// Tensors side by side, on top of each other, behind each other, and taken apart again.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"atleast_3d(Tensor(a) self) -> Tensor(a)"> atleast_3d;
inline constexpr Op<"column_stack(Tensor[] tensors) -> Tensor"> column_stack;
inline constexpr Op<"dstack(Tensor[] tensors) -> Tensor"> dstack;
inline constexpr Op<"block_diag(Tensor[] tensors) -> Tensor"> block_diag;
inline constexpr Op<"cartesian_prod(Tensor[] tensors) -> Tensor"> cartesian_prod;
inline constexpr Op<"combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor"> combinations;
inline constexpr Op<"hsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]"> hsplit;
inline constexpr Op<"hsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]"> hsplit_at;
inline constexpr Op<"vsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]"> vsplit;
inline constexpr Op<"vsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]"> vsplit_at;
inline constexpr Op<"dsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]"> dsplit;
inline constexpr Op<"dsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]"> dsplit_at;
inline constexpr Op<
    "tensor_split.tensor_indices_or_sections(Tensor(a) self, Tensor tensor_indices_or_sections, int dim=0) "
    "-> Tensor(a)[]">
    tensor_split_tensor;
inline constexpr Op<"fliplr(Tensor self) -> Tensor"> fliplr;
inline constexpr Op<"flipud(Tensor self) -> Tensor"> flipud;
inline constexpr Op<"ravel(Tensor(a) self) -> Tensor(a)"> ravel;
inline constexpr Op<"sum_to_size(Tensor self, SymInt[] size) -> Tensor"> sum_to_size;
inline constexpr Op<"kron(Tensor self, Tensor other) -> Tensor"> kron;
inline constexpr Op<"repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor">
    repeated_positions;
inline constexpr Op<
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) "
    "-> Tensor">
    repeat_interleave_by;

}  // namespace fl
