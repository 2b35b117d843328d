// A block of bytes that tensors share, with the count of its changes.
#pragma once
#include <atomic>
#include <cstddef>

#include "flambeau/base/free_list.h"
#include "flambeau/base/ref.h"
#include "flambeau/sym/sym_int.h"
#include "flambeau/tensor/device.h"

namespace fl {

struct AllocatorStats {
  int64_t allocated = 0;    ///< bytes in live storages
  int64_t peak = 0;         ///< the most that `allocated` was since reset_peak
  int64_t reserved = 0;     ///< bytes taken from the system, cached ones included
  int64_t allocations = 0;  ///< calls of allocate
};

/// Memory of one device. Implementations are thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// At least `bytes` bytes aligned to 64; never null. Raises OutOfMemoryError with the figures.
  virtual void* allocate(size_t bytes) = 0;
  /// Takes what allocate(bytes) gave.
  virtual void release(void* data, size_t bytes) = 0;
  /// Copies bytes; either side may be host memory. Has happened when it returns.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  virtual AllocatorStats stats() const = 0;
  virtual void reset_peak() = 0;
  virtual void empty_cache() = 0;
};
/// The caching allocator of a device; CPU here, others are installed by their backend. Raises RuntimeError on
/// a device that has none.
Allocator& allocator(Device d);
/// Makes get(index) the allocators of a kind of device. Called once, by the backend, before its first tensor.
void install_allocator(DeviceType type, Allocator& (*get)(int index));
AllocatorStats allocator_stats(Device d);
void reset_peak_memory(Device d);
/// Gives cached blocks back to the system.
void empty_cache(Device d);

class Storage : public RefCounted, public FreeListed<Storage> {
 public:
  /// Takes `bytes` from the device's allocator (none for meta).
  Storage(int64_t bytes, Device device);
  /// Memory of someone else, given back through release(context).
  Storage(void* data, int64_t bytes, Device device, void (*release)(void* context), void* context);
  /// No memory: shapes only (the meta device and traced tensors).
  static Ref<Storage> without_data(Device device);
  ~Storage() override;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  bool has_data() const { return has_data_; }
  /// Changes in place so far. Tensors that share the storage share the counter.
  int64_t version() const { return version_.load(std::memory_order_relaxed); }
  /// Takes a count back to what it was before changes that were undone.
  void restore_version(int64_t v) { version_.store(v, std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }
  /// Replaces the memory (resize_, set_data); old contents up to the smaller size are kept. Less, but not
  /// none, stays where it is: tensors that are larger still find memory behind it.
  void resize(int64_t bytes);

 private:
  Storage() = default;
  void give_back();

  void* data_ = nullptr;
  int64_t bytes_ = 0;
  Device device_;
  bool has_data_ = true;
  void (*release_)(void*) = nullptr;  ///< of memory of someone else
  union {
    void* context_ = nullptr;  ///< of release_
    int64_t held_;             ///< without it: the bytes taken from the allocator
  };
  std::atomic<int64_t> version_{0};
};

}  // namespace fl
