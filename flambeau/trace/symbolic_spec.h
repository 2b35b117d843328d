// Symbols in the place of an example's sizes.
#pragma once
#include <vector>

#include "flambeau/sym/shape_env.h"
#include "flambeau/tensor/tensor.h"

namespace fl::trace {

/// The spec of an example with a new symbol for each marked dimension of size `lower` or more, which is the
/// symbol's lower bound: 2 for sizes, 0 for numbers; 1 for contiguous examples, where 1 stands for a larger
/// size. Strides that are products of sizes stay so as expressions; others that depend on a marked size
/// become symbols, too.
TensorSpec symbolic_spec(sym::ShapeEnv& env, const TensorSpec& example, const std::vector<bool>& dynamic,
                         int64_t lower = 2);

}  // namespace fl::trace
