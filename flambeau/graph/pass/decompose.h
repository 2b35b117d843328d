// Replaces calls by calls of primitives. Tests: tests/graph/pass_test.cpp.
#pragma once
#include <span>

#include "flambeau/graph/graph.h"

namespace fl::graph {

/// Runs the decomposition of every operator that is no primitive and not in `keep`, again and again, with the
/// calls recorded in its place. Mutating operators stay. Raises NotImplementedError on an operator that has
/// neither. Returns the number of calls replaced.
int decompose(Graph& g, std::span<const OpInfo* const> keep = {});

/// Gives every call the specs that the operator's rule gives for its arguments as they are now.
void refresh_specs(Graph& g);

}  // namespace fl::graph
