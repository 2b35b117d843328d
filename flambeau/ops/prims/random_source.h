// Tensors of random numbers from the next slot of a generator (the device's own where none is given).
#pragma once
#include "flambeau/tensor/generator.h"

namespace fl::random {

Tensor uniform_numbers(IntList size, DType dtype, Device device, Generator* generator);  ///< In [0, 1).
Tensor normal_numbers(IntList size, DType dtype, Device device, Generator* generator);
/// Integers in [low, high).
Tensor whole_numbers(SymInt low, SymInt high, IntList size, DType dtype, Device device, Generator* generator);

}  // namespace fl::random
