// One number a spatial dimension; a single one stands for both.
#pragma once
#include <array>
#include <cstdint>

#include "flambeau/tensor/tensor.h"

namespace fl::nn {

struct Pair {
  std::array<SymInt, 2> values;
  Pair(int both) : values{both, both} {}
  Pair(int64_t both) : values{both, both} {}
  Pair(int64_t height, int64_t width) : values{height, width} {}
  operator IntList() const { return {values.data(), values.size()}; }
};

}  // namespace fl::nn
