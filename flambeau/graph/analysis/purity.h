// Which calls may be dropped, merged or moved.
#pragma once
#include "flambeau/graph/graph.h"

namespace fl::graph {

/// The call changes nothing but its results: it writes no argument.
bool has_side_effect(const Node& n);

/// Two calls with the same arguments give the same values: no side effect and no draw from a generator.
/// (Random primitives take seed and offset as arguments and are pure.)
bool is_pure(const Node& n);

/// The graph has no call with a side effect: sharing of memory among its values cannot be seen.
bool is_functional(const Graph& g);

}  // namespace fl::graph
