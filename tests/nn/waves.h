// Inputs and parameters that other programs can make too: sine waves.
#pragma once
#include "flambeau/nn/module.h"

namespace fl::testing {

/// sin(step * i - shift) for element i in row-major order.
Tensor wave(IntList sizes, float step, float shift = 0);
/// Parameter k becomes wave(sizes, 0.7, 0.3 k).
void fill_with_waves(nn::Module& module);

}  // namespace fl::testing
