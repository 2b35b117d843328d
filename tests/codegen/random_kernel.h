// Kernels of random operations, loops, reductions and stores, with data for them.
#pragma once
#include <vector>

#include "compare.h"
#include "flambeau/loop/ir.h"

namespace fl::codegen {

struct RandomKernel {
  loop::Kernel kernel;
  std::vector<Bytes> data;  ///< of every buffer
  std::vector<int64_t> sizes;
  std::vector<loop::ScalarBits> params;
};

/// The kernel of this number; any_lanes: with any number of partial results.
RandomKernel random_kernel(uint64_t seed, bool any_lanes = false);

/// An environment variable's number.
int64_t number_from(const char* name, int64_t otherwise);

}  // namespace fl::codegen
