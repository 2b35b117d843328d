#include "flambeau/runtime/cuda/reports.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include "flambeau/loop/interpret.h"
#include "flambeau/runtime/cuda/allocator.h"

namespace fl::runtime::cuda {

using codegen::GpuErrorSlot;

namespace {

constexpr uint32_t kFree = 0, kWritten = 2;  // of GpuErrorSlot::state

struct Kernels {
  std::mutex mutex;
  std::deque<std::shared_ptr<const codegen::GpuCode>> codes;
};

Kernels& kernels() {
  static Kernels& all = *new Kernels;
  return all;
}

std::vector<std::atomic<GpuErrorSlot*>>& slots() {
  static auto& all = *new std::vector<std::atomic<GpuErrorSlot*>>(static_cast<size_t>(device_count()));
  return all;
}

}  // namespace

GpuErrorSlot* report_slot(int device) {
  std::atomic<GpuErrorSlot*>& slot = slots()[static_cast<size_t>(device)];
  if (GpuErrorSlot* s = slot.load(std::memory_order_acquire)) return s;
  activate(device);
  auto* made = new (allocate_pinned(sizeof(GpuErrorSlot))) GpuErrorSlot{};
  GpuErrorSlot* other = nullptr;
  if (slot.compare_exchange_strong(other, made, std::memory_order_acq_rel)) return made;
  release_pinned(made);
  return other;
}

int64_t number_kernel(std::shared_ptr<const codegen::GpuCode> code) {
  Kernels& all = kernels();
  std::lock_guard lock(all.mutex);
  all.codes.push_back(std::move(code));
  return static_cast<int64_t>(all.codes.size()) - 1;
}

void raise_reports(int device) {
  GpuErrorSlot* slot = slots()[static_cast<size_t>(device)].load(std::memory_order_acquire);
  if (!slot || std::atomic_ref(slot->state).load(std::memory_order_acquire) != kWritten) [[likely]]
    return;
  const GpuErrorSlot report = *slot;
  std::atomic_ref(slot->state).store(kFree, std::memory_order_release);
  std::shared_ptr<const codegen::GpuCode> code;
  {
    Kernels& all = kernels();
    std::lock_guard lock(all.mutex);
    code = all.codes.at(static_cast<size_t>(report.kernel));
  }
  const auto& check = code->checks().at(report.check);
  throw loop::OutOfBoundsError(loop::failure_message(check.message, check.dtype, report.value, {}, {}));
}

}  // namespace fl::runtime::cuda
