// Sizes and indices of reductions.
#pragma once
#include <optional>

#include "flambeau/op/op.h"

namespace fl {

/// Which dimensions of a tensor a reduction takes away.
class ReducedDims {
 public:
  /// From an int[] or int[]? argument. None, and by default the empty list, stand for every dimension. Raises
  /// IndexError and RuntimeError as PyTorch does.
  static ReducedDims of(const Value& dims, int rank, bool keepdim, bool empty_is_all = true);
  static ReducedDims one(int64_t dim, int rank, bool keepdim);
  static ReducedDims all(int rank, bool keepdim);

  bool contains(int d) const { return reduced_[d]; }
  int rank() const { return static_cast<int>(reduced_.size()); }
  bool keepdim() const { return keepdim_; }
  std::vector<int64_t> list() const;
  Sizes list_as_sizes() const;
  Sizes out_sizes(IntList in) const;
  /// Number of elements that become one.
  SymInt count(IntList in) const;
  /// Sizes of the reduced dimensions, in order.
  std::vector<Expr> reduce_sizes(const std::vector<Expr>& in) const;
  /// The input's index for an output's and a point of the reduction.
  Index input_index(std::span<const Expr> i, std::span<const Expr> r) const;
  /// A tensor of the output's sizes with the reduced dimensions as dimensions of size 1.
  Tensor with_kept_dims(const Tensor& out) const;

 private:
  ReducedDims(std::vector<bool> reduced, bool keepdim) : reduced_(std::move(reduced)), keepdim_(keepdim) {}
  std::vector<bool> reduced_;
  bool keepdim_;
};

/// A contiguous spec of a reduction's output.
TensorSpec reduced_spec(const TensorSpec& in, const ReducedDims& dims, DType dtype);
/// A Lowered of kind Reduction over argument 0, whose body is left to the caller.
Lowered reduction_over(const LowerCtx& c, const ReducedDims& dims, ReduceOp op);
/// x converted to another dtype; complex to real drops the imaginary part.
Val converted(ScalarOps& s, Val x, DType dtype);

}  // namespace fl
