// Removes calls whose results nobody reads and that change nothing. Tests: tests/graph/pass_test.cpp.
#pragma once
#include "flambeau/graph/graph.h"

namespace fl::graph {

/// Returns the number of calls removed. Inputs stay.
int eliminate_dead_code(Graph& g);

}  // namespace fl::graph
