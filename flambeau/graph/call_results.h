// The tensors that a call returned, as a node numbers them.
#pragma once
#include <vector>

#include "flambeau/op/op_def.h"

namespace fl::graph {

/// outs: as many as op returns; lists are flattened. Raises UnsupportedError on a number.
std::vector<Tensor> flat_results(const OpInfo& op, const Value* outs);

}  // namespace fl::graph
