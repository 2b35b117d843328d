// Tensors of random numbers from the next slot of a generator (the device's own where none is given).
#pragma once
#include "flambeau/op/op.h"
#include "flambeau/tensor/generator.h"

namespace fl {

/// By a seed in memory: `random::seed_tensor`, say.
inline constexpr Op<"philox_uniform.seed(Tensor seed, SymInt[] size, *, ScalarType? dtype=None) -> Tensor">
    philox_uniform_by_seed;

}  // namespace fl

namespace fl::random {

/// Room for size's numbers.
PhiloxSlot reserve(Generator* generator, IntList size, Device device);
/// A number that others follow from: an int64 tensor of one element.
Tensor seed_tensor(Device device, Generator* generator);
Tensor uniform_numbers(IntList size, DType dtype, Device device, Generator* generator);  ///< In [0, 1).
Tensor normal_numbers(IntList size, DType dtype, Device device, Generator* generator);
/// Integers in [low, high).
Tensor whole_numbers(SymInt low, SymInt high, IntList size, DType dtype, Device device, Generator* generator);

}  // namespace fl::random
