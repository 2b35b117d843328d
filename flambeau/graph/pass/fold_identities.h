// Removes calls that give their argument back: views of the same shape, conversions to the same dtype,
// copies. Tests: tests/graph/pass_test.cpp.
#pragma once
#include "flambeau/graph/graph.h"

namespace fl::graph {

/// Works on functional graphs only, and keeps copies whose memory the caller sees. Returns the number of
/// calls removed.
int fold_identities(Graph& g);

}  // namespace fl::graph
