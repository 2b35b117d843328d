// Which operations are defined by other operations, for everyone who runs bodies.
#pragma once
#include <optional>

#include "flambeau/op/scalar_ops.h"

namespace fl::loop {

/// The value of op written into s with simpler operations, where op is not one that a backend must know.
std::optional<Val> expand_operation(ScalarOps& s, ScalarOp op, Val a, Val b);

}  // namespace fl::loop
