// Composites over views and over the primitives that move elements.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<"reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)"> reshape;
inline constexpr Op<"squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)"> squeeze_dim;
inline constexpr Op<"transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"> transpose;
inline constexpr Op<"t(Tensor(a) self) -> Tensor(a)"> t;
inline constexpr Op<"mT(Tensor(a) self) -> Tensor(a)"> mT;
inline constexpr Op<"swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)"> swapaxes;
inline constexpr Op<"movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"> movedim;
inline constexpr Op<"narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)"> narrow;
inline constexpr Op<"split.Tensor(Tensor(a) self, SymInt split_size, int dim=0) -> Tensor(a)[]"> split;
inline constexpr Op<"split_with_sizes(Tensor(a) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]">
    split_with_sizes;
inline constexpr Op<"chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]"> chunk;
inline constexpr Op<"unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]"> unbind;
inline constexpr Op<"tensor_split.sections(Tensor(a) self, SymInt sections, int dim=0) -> Tensor(a)[]">
    tensor_split;
inline constexpr Op<"tensor_split.indices(Tensor(a) self, SymInt[] indices, int dim=0) -> Tensor(a)[]">
    tensor_split_indices;
inline constexpr Op<"flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)">
    flatten;
inline constexpr Op<"unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)"> unflatten;
inline constexpr Op<"view_as(Tensor(a) self, Tensor other) -> Tensor(a)"> view_as;
inline constexpr Op<"reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)"> reshape_as;
inline constexpr Op<"expand_as(Tensor(a) self, Tensor other) -> Tensor(a)"> expand_as;
inline constexpr Op<"broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)"> broadcast_to;
inline constexpr Op<"broadcast_tensors(Tensor[] tensors) -> Tensor[]"> broadcast_tensors;
inline constexpr Op<"meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]"> meshgrid;
inline constexpr Op<"stack(Tensor[] tensors, int dim=0) -> Tensor"> stack;
inline constexpr Op<"hstack(Tensor[] tensors) -> Tensor"> hstack;
inline constexpr Op<"vstack(Tensor[] tensors) -> Tensor"> vstack;
inline constexpr Op<"atleast_1d(Tensor self) -> Tensor"> atleast_1d;
inline constexpr Op<"atleast_2d(Tensor self) -> Tensor"> atleast_2d;
inline constexpr Op<"tile(Tensor self, SymInt[] dims) -> Tensor"> tile;
inline constexpr Op<
    "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> "
    "Tensor">
    repeat_interleave;
inline constexpr Op<"pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor"> pad;
inline constexpr Op<"one_hot(Tensor self, int num_classes=-1) -> Tensor"> one_hot;
inline constexpr Op<"rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor"> rot90;
inline constexpr Op<"diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor"> diag_embed;

}  // namespace fl
