// One operator call of a graph as loops over its elements.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "flambeau/graph/graph.h"
#include "flambeau/loop/machine_shape.h"
#include "flambeau/op/op_def.h"

namespace fl::loop {

/// The call's meaning: its `lower`, or loops around its `scalar`. Raises NotImplementedError naming the
/// operator if it has neither.
Lowered lower_node(const graph::Graph& g, const graph::Node& n);

/// A memory access of a call as eager mode has it: the element number of an argument, with the argument's own
/// strides.
std::vector<Expr> direct_accesses(const graph::Graph& g, const graph::Node& n, const Lowered& l);

/// A reduction with its points in canonical order: reduced dimensions by the strides of the arguments, the
/// largest first, joined where the arguments run over them as one. The order in which values combine follows
/// from the call alone, not from what is fused with it, so that eager and compiled code give the same bits.
struct CanonicalReduction {
  Lowered lowered;
  bool columns = false;   ///< memory runs along the outputs: points combine one after the other
  std::vector<int> logs;  ///< floor(log2) of each dimension of points, for the example sizes
  int output_log = 0;     ///< the sum over the outputs' dimensions of ceil(log2)
};
CanonicalReduction canonical_reduction(const graph::Graph& g, const graph::Node& n, Lowered l,
                                       const std::function<int64_t(const Expr&)>& hint);

/// How many pieces a reduction's points are cut into, so that few outputs still keep all threads busy: 1 or
/// more.
int64_t split_count(const CanonicalReduction& r, const MachineShape& machine);
/// What split_count and the cut follow from, of one size: part of the kind of an eager call.
int size_class(int64_t size);

/// A reduction in two parts: outputs of `pieces` partial results each (first dimension), and their
/// combination, whose body reads kPartialResults.
struct SplitReduction {
  Lowered partial, combine;
};
SplitReduction split_reduction(const CanonicalReduction& r, int64_t pieces);

}  // namespace fl::loop
