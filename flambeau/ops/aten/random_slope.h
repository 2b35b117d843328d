// leaky_relu whose slopes are drawn.
#pragma once
#include "flambeau/op/op.h"

namespace fl {

inline constexpr Op<
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? "
    "generator=None) -> Tensor">
    rrelu;

}  // namespace fl
