// How each reduction starts, takes a point, merges two partial results and ends: written once over scalar
// operations, so that the interpreter and the machine code agree to the bit.
#pragma once
#include <vector>

#include "flambeau/loop/ir.h"

namespace fl::loop {

using State = std::vector<Val>;

/// The dtypes of a state, and of the results, for operands whose first has this dtype.
std::vector<DType> state_dtypes(ReduceOp op, DType operand);
/// The state of no points.
State reduce_identity(ScalarOps& s, ReduceOp op, DType operand);
State reduce_step(ScalarOps& s, ReduceOp op, const State& state, const std::vector<Val>& operands);
State reduce_merge(ScalarOps& s, ReduceOp op, const State& a, const State& b);
/// reduce_merge(state, the state of no points), to the bit.
State reduce_with_none(ScalarOps& s, ReduceOp op, const State& state);
/// Whether partial results first agree on a maximum (the tree of Maximum over their first parts), are
/// rescaled to it, and then add up (the tree of Add over what reduce_rescale gives), instead of merging in
/// pairs.
inline bool merges_by_rescaling(ReduceOp op) { return op == ReduceOp::OnlineSoftmax; }
Val reduce_rescale(ScalarOps& s, const State& state, Val max);
/// The results; most reductions give their state.
State reduce_result(ScalarOps& s, ReduceOp op, const State& state);

}  // namespace fl::loop
