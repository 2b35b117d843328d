#include "flambeau/codegen/cpu/failure.h"

namespace fl::codegen {

extern "C" void fl_record_failure(ErrorSlot* slot, int64_t check, int64_t position, int64_t step,
                                  int64_t count_and_size, const uint8_t* flags, const uint8_t* values) {
  const int64_t count = count_and_size & 0xffff, size = count_and_size >> 16;
  for (int64_t lane = 0; lane < count; ++lane) {
    if (!flags[lane]) continue;
    const int64_t at = position + lane * step;
    while (slot->busy.test_and_set(std::memory_order_acquire)) {
    }
    if (!slot->failed.load(std::memory_order_relaxed) || at < slot->position) {
      slot->position = at;
      slot->check = check;
      slot->value = {};
      std::memcpy(slot->value.bytes, values + lane * size, static_cast<size_t>(size));
      slot->failed.store(true, std::memory_order_release);
    }
    slot->busy.clear(std::memory_order_release);
    return;
  }
}

}  // namespace fl::codegen
