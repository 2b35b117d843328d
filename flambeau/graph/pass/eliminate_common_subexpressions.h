// Merges calls that compute the same. Tests: tests/graph/pass_test.cpp.
#pragma once
#include "flambeau/graph/graph.h"

namespace fl::graph {

/// Merges pure calls of one operator with the same arguments. Tensors that the caller gets stay apart, for
/// they may be written later. Does nothing on a graph with side effects. Returns the number of calls removed.
int eliminate_common_subexpressions(Graph& g);

}  // namespace fl::graph
