// One operator call of a graph as loops over its elements.
#pragma once
#include <optional>
#include <vector>

#include "flambeau/graph/graph.h"
#include "flambeau/op/op_def.h"

namespace fl::loop {

/// The call's meaning: its `lower`, or loops around its `scalar`. Raises NotImplementedError naming the
/// operator if it has neither.
Lowered lower_node(const graph::Graph& g, const graph::Node& n);

/// How many pieces a reduction's points are cut into, so that few outputs still keep all threads busy: 1 or
/// more. A function of the sizes alone: eager and compiled code add in the same order.
int64_t split_count(ReduceOp op, int64_t outputs, int64_t points);
/// A reduction in two parts: outputs of `pieces` partial results each (first dimension), and their
/// combination, whose body reads kPartialResults.
struct SplitReduction {
  Lowered partial, combine;
};
SplitReduction split_reduction(const Lowered& l, int64_t pieces,
                               const std::function<int64_t(const Expr&)>& hint);

}  // namespace fl::loop
