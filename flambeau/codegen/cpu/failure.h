// How running kernels report checks that failed.
#pragma once
#include <atomic>
#include <cstdint>

#include "flambeau/loop/scalar_bits.h"

namespace fl::codegen {

/// The failed check at the first position, whatever order threads meet them in.
struct ErrorSlot {
  std::atomic<bool> failed{false};
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
  int64_t position = 0, check = 0;
  loop::ScalarBits value;
};

/// What generated code calls: for lanes l < count whose flag is set, check number `check` failed at
/// position + l * step with the value values[l].
extern "C" void fl_record_failure(ErrorSlot* slot, int64_t check, int64_t position, int64_t step,
                                  int64_t count_and_size, const uint8_t* flags, const uint8_t* values);

}  // namespace fl::codegen
