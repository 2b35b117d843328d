// Reductions of consecutive parts of a dimension.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? "
    "offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor">
    segment_reduce;

}  // namespace fl
