// Scratch memory on a device.
#pragma once
#include <cstdint>

namespace fl::library::cuda {

/// Gives a call scratch memory for what it puts on a stream.
class DeviceWorkspace {
 public:
  virtual ~DeviceWorkspace() = default;
  /// At least `count` bytes of the device, aligned to 256. For the work that is put on the stream before the
  /// next call of bytes().
  virtual void* bytes(int64_t count) = 0;
};

/// A part of another's memory.
class FixedWorkspace final : public DeviceWorkspace {
 public:
  FixedWorkspace(void* memory, int64_t size) : memory_(memory), size_(size) {}
  void* bytes(int64_t count) override;
  void* memory() const { return memory_; }

 private:
  void* memory_;
  int64_t size_;
};

}  // namespace fl::library::cuda
