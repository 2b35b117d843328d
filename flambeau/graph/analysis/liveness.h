// When values are used for the last time.
#pragma once
#include <vector>

#include "flambeau/graph/graph.h"

namespace fl::graph {

/// For each node id: the nodes whose outputs no later call and no output of the graph reads. A node without
/// uses is dead after itself; one that is an output never is.
std::vector<std::vector<int32_t>> dead_after(const Graph& g);

}  // namespace fl::graph
