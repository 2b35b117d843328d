// Puts the equalities of sizes that the trace found into every expression.
#pragma once
#include "flambeau/graph/graph.h"

namespace fl::graph {

/// Equal sizes get equal expressions, so that later passes need not ask for guards.
void simplify_symbols(Graph& g);
/// Of one spec or argument.
TensorSpec simplified(const sym::ShapeEnv& env, const TensorSpec& s);
Value simplified(const sym::ShapeEnv& env, const Value& v);

}  // namespace fl::graph
