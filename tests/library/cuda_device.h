// A device for the tests of this folder: its context, memory and the fixture that skips without one.
#pragma once
#include "flambeau/library/cuda/device_workspace.h"
#include "flambeau/library/cuda/driver.h"
#include "tests/library/values.h"

namespace fl::library::cuda::test {

/// Memory on the device, with room for misaligned addresses.
class DeviceMemory {
 public:
  explicit DeviceMemory(int64_t bytes) : bytes_(bytes) { FL_CUDA(cuMemAlloc, &address_, bytes + 64); }
  explicit DeviceMemory(const library::test::Buffer& buffer, int64_t offset = 0)
      : DeviceMemory(buffer.bytes()) {
    offset_ = offset;
    FL_CUDA(cuMemcpyAsync, address(), reinterpret_cast<CUdeviceptr>(buffer.data()), bytes_, nullptr);
  }
  ~DeviceMemory() { driver().cuMemFree(address_); }
  DeviceMemory(const DeviceMemory&) = delete;
  void* data() const { return reinterpret_cast<void*>(address()); }
  void read(library::test::Buffer& buffer) const {
    FL_CUDA(cuMemcpyAsync, reinterpret_cast<CUdeviceptr>(buffer.data()), address(), bytes_, nullptr);
    FL_CUDA(cuStreamSynchronize, nullptr);
  }

 private:
  CUdeviceptr address() const { return address_ + offset_; }
  CUdeviceptr address_ = 0;
  int64_t bytes_, offset_ = 0;
};

class GrowingWorkspace final : public DeviceWorkspace {
 public:
  void* bytes(int64_t count) override {
    if (count > size_) {
      memory_ = std::make_unique<DeviceMemory>(count);
      size_ = count;
    }
    return memory_->data();
  }

 private:
  std::unique_ptr<DeviceMemory> memory_;
  int64_t size_ = 0;
};

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_driver()) GTEST_SKIP() << "no GPU: " << why_no_driver();
    CUdevice device;
    FL_CUDA(cuDeviceGet, &device, 0);
    CUcontext context;
    FL_CUDA(cuDevicePrimaryCtxRetain, &context, device);
    FL_CUDA(cuCtxSetCurrent, context);
  }
  GrowingWorkspace workspace_;
};

}  // namespace fl::library::cuda::test
