// Where the dimensions of index tensors go in a result.
#pragma once
#include <vector>

#include "flambeau/op/op.h"

namespace fl {

/// The call self[indices]: which dimensions are indexed, and where the dimensions of the positions stand.
struct IndexPlan {
  std::vector<int> given;  ///< indexed dimensions of self, ascending
  Sizes sizes;             ///< the indices' common sizes
  int start = 0;           ///< first result dimension of them

  Sizes out_sizes(const Sizes& self) const;
  /// Strides of self as an operand of the result's sizes: 0 along the positions.
  Sizes source_strides(const Sizes& self) const;
  Sizes index_strides(const TensorSpec& index, int out_rank) const;
};

/// Arguments 0 (self) and 1 (Tensor?[] of int64). Raises IndexError as PyTorch does.
IndexPlan index_plan(const InferCtx& c);
IndexPlan index_plan(const LowerCtx& c);

/// An index that may not be negative: such a value is moved out of range, so that the check on it fails.
Val strict_index(BodyOps& s, Val index, const Expr& size);

}  // namespace fl
