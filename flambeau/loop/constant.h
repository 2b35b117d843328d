// Constants of kernels as values and back.
#pragma once
#include "flambeau/loop/ir.h"
#include "flambeau/loop/scalar_bits.h"

namespace fl::loop {

ScalarBits constant_bits(const Inst& constant);
Inst constant_inst(DType dtype, const ScalarBits& bits);

}  // namespace fl::loop
