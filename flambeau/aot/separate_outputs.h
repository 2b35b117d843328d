// Gives outputs memory of their own. Tests: tests/aot/wrapper_test.cpp.
#pragma once
#include <vector>

#include "flambeau/graph/graph.h"

namespace fl::aot {

/// Each listed output becomes a tensor that shares no memory with an input or an earlier listed output, with
/// the strides of its wanted spec. wanted: by output number; null: any strides.
void separate_outputs(graph::Graph& g, const std::vector<int>& outputs,
                      const std::vector<const TensorSpec*>& wanted);

}  // namespace fl::aot
