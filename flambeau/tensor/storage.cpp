#include "flambeau/tensor/storage.h"

#include <array>
#include <cstring>

#include "flambeau/base/error.h"
#include "flambeau/tensor/cpu_allocator.h"

namespace fl {

namespace {

constexpr size_t kDeviceTypes = 3;

using GetAllocator = Allocator& (*)(int index);

std::array<std::atomic<GetAllocator>, kDeviceTypes>& installed() {
  static std::array<std::atomic<GetAllocator>, kDeviceTypes> table{};
  return table;
}

}  // namespace

Allocator& allocator(Device d) {
  if (d.type == DeviceType::CPU) [[likely]]
    return cpu_allocator();
  const GetAllocator get = installed()[static_cast<size_t>(d.type)].load(std::memory_order_acquire);
  FL_CHECK(get, RuntimeError, "device {} has no allocator: expected a backend for it to be loaded", d.str());
  return get(d.index);
}

void install_allocator(DeviceType type, GetAllocator get) {
  FL_CHECK(type == DeviceType::CUDA, ValueError, "expected a device type that needs an allocator, got {}",
           Device{type}.str());
  installed()[static_cast<size_t>(type)].store(get, std::memory_order_release);
}

AllocatorStats allocator_stats(Device d) { return allocator(d).stats(); }
void reset_peak_memory(Device d) { allocator(d).reset_peak(); }
void empty_cache(Device d) { allocator(d).empty_cache(); }

Storage::Storage(int64_t bytes, Device device)
    : bytes_(bytes), device_(device), has_data_(device.type != DeviceType::Meta), held_(bytes) {
  FL_CHECK(bytes >= 0, RuntimeError, "expected a storage of 0 bytes or more, got {}", bytes);
  if (has_data_ && bytes > 0) data_ = allocator(device).allocate(static_cast<size_t>(bytes));
}

Storage::Storage(void* data, int64_t bytes, Device device, void (*release)(void* context), void* context)
    : data_(data), bytes_(bytes), device_(device), release_(release), context_(context) {}

Ref<Storage> Storage::without_data(Device device) {
  Ref<Storage> storage(new Storage);
  storage->device_ = device;
  storage->has_data_ = false;
  return storage;
}

Storage::~Storage() { give_back(); }

void Storage::give_back() {
  if (release_)
    release_(context_);
  else if (data_)
    allocator(device_).release(data_, static_cast<size_t>(held_));
}

void Storage::resize(int64_t bytes) {
  FL_CHECK(bytes >= 0, RuntimeError, "expected a storage of 0 bytes or more, got {}", bytes);
  if (!has_data_) {
    bytes_ = bytes;
    return;
  }
  if (bytes == bytes_) return;
  if (!release_ && bytes > 0 && bytes <= held_) {
    bytes_ = bytes;
    return;
  }
  void* data = nullptr;
  const int64_t held = bytes > 0 ? std::max(bytes, bytes_) : 0;
  if (held > 0) {
    Allocator& memory = allocator(device_);
    data = memory.allocate(static_cast<size_t>(held));
    if (const int64_t kept = bytes_; kept > 0) memory.copy(data, data_, static_cast<size_t>(kept));
  }
  give_back();
  data_ = data;
  bytes_ = bytes;
  release_ = nullptr;
  held_ = held;
}

}  // namespace fl
