// Which numbers a dtype has.
#pragma once
#include "flambeau/tensor/scalar.h"

namespace fl {

/// Raises RuntimeError where a number written into a tensor of this dtype would become another one: a whole
/// number beyond its limits (an unsigned dtype takes negative ones down to minus its largest), a fraction too
/// large, nan or an infinity for integers, a complex number for real ones. Fractions are cut off; to bool
/// everything goes.
void check_fits(const Scalar& number, DType dtype);

}  // namespace fl
