// Rows whose values threads can keep in registers from one stage of a kernel to the next.
#pragma once
#include <optional>
#include <vector>

#include "flambeau/loop/ir.h"

namespace fl::codegen {

struct HeldRows {
  sym::Expr row = 0;  ///< points of the inner loop, which all stages with one have
  /// For each value that is what an earlier stage has computed or loaded at the same point: that value; else
  /// -1.
  std::vector<int32_t> known_before;
  int64_t cost = 0;      ///< operations of a point, those of several stages once
  int64_t words = 0;     ///< registers for what a point keeps from one stage to the next
  bool repeats = false;  ///< Memory is read again, or what takes long is computed again.
};

/// Nothing where the stages walk in another way than along one loop, in partial results.
std::optional<HeldRows> find_held_rows(const loop::Kernel& k);

}  // namespace fl::codegen
