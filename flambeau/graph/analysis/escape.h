// Which values' memory the caller gets to see.
#pragma once
#include <vector>

#include "flambeau/graph/graph.h"

namespace fl::graph {

/// By node id, 1 for nodes whose output's memory is that of an output of the graph: outputs, what they are
/// views of, and inputs.
std::vector<char> escaping_nodes(const Graph& g);

}  // namespace fl::graph
