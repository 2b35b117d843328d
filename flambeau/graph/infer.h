// Shapes and dtypes of calls in a graph.
#pragma once
#include <vector>

#include "flambeau/graph/graph.h"

namespace fl::graph {

/// The specs of a call's outputs by the operator's shape rule. May add guards to the graph's shape_env.
std::vector<TensorSpec> infer_specs(const Graph& g, const OpInfo& op, const std::vector<Value>& args);

/// A tensor without elements for every reference in an argument. Tensors made for the same value are not the
/// same tensor.
Value fake_argument(const Graph& g, const Value& v);

/// Equal for all sizes that the guards admit.
bool same_number(const Graph& g, SymInt a, SymInt b);
bool same_spec(const Graph& g, const TensorSpec& a, const TensorSpec& b);

}  // namespace fl::graph
