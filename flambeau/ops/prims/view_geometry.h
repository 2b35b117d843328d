// Sizes, strides and index maps that views share.
#pragma once
#include <optional>

#include "flambeau/op/op.h"

namespace fl {

/// Dimension argument `value` of a tensor of this rank.
int64_t dimension(const Value& value, int rank);
std::vector<int64_t> dimensions(IntList dims, int rank);  ///< Raises RuntimeError on repeated ones.

/// Sizes with a -1 replaced. Raises RuntimeError where the element counts differ.
Sizes resolve_sizes(IntList sizes, SymInt numel);
/// Strides with which the tensor's elements have other sizes without a copy; nothing if there are none.
std::optional<Sizes> view_strides(const TensorSpec& from, IntList sizes);
/// The index with the same row-major position in other sizes of equal product.
Index reshape_index(std::span<const Expr> index, std::span<const Expr> from, std::span<const Expr> to);
/// The index of the element at a storage position, in a dense tensor of this geometry.
Index index_at(const Expr& position, const TensorSpec& dense);

/// What slice selects of a dimension: start, step and count.
struct SliceRange {
  SymInt start, step, count;
};
/// From the optional arguments, with Python's clamping. Branches on symbolic sizes are guarded.
SliceRange slice_range(SymInt size, const Value& start, const Value& end, const Value& step);
/// The first position, without branches: valid where slice_range has been asked before.
Expr slice_start(const Expr& size, const Value& start);
/// An index of a dimension, negative ones from the end, without branches.
Expr wrap_index(const Expr& index, const Expr& size);

struct Geometry {
  Sizes size, stride;
  SymInt offset;
};
/// The arguments of as_strided.
Geometry strided_geometry(const TensorSpec& self, const Value& size, const Value& stride,
                          const Value& offset);

/// x with the dense layout of another tensor of its sizes.
Tensor laid_out(const Tensor& x, const TensorSpec& like);
/// A Lowered of kind View.
Lowered view_of(const LowerCtx& c, std::function<Index(std::span<const Expr>)> map);
/// A SymInt? argument.
std::optional<SymInt> optional_int(const Value& v);
/// The two dimensions of a diagonal, wrapped. Raises RuntimeError if they are one.
std::pair<int64_t, int64_t> diagonal_dims(const Value& dim1, const Value& dim2, int rank);

}  // namespace fl
