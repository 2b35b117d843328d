// Kernels on the first GPU, through nothing but the driver.
#pragma once
#include <memory>

#include "compare.h"
#include "flambeau/codegen/gpu/compile.h"
#include "flambeau/library/cuda/driver.h"

namespace fl::codegen {

/// Makes the first GPU's context the thread's. False: there is none.
bool use_gpu();

class GpuBuffer {
 public:
  explicit GpuBuffer(int64_t bytes);
  GpuBuffer(const Bytes& data, int64_t offset);  ///< starts `offset` bytes past an aligned address
  ~GpuBuffer() { library::cuda::driver().cuMemFree(base_); }
  GpuBuffer(const GpuBuffer&) = delete;
  CUdeviceptr address() const { return base_ + static_cast<CUdeviceptr>(offset_); }
  Bytes read(size_t bytes) const;

 private:
  CUdeviceptr base_ = 0;
  int64_t offset_ = 0;
};

/// Code that the driver has loaded.
class GpuKernel {
 public:
  explicit GpuKernel(std::shared_ptr<const GpuCode> code);
  ~GpuKernel();
  GpuKernel(const GpuKernel&) = delete;
  const GpuCode& code() const { return *code_; }
  /// Starts it. buffers[k] points to the element of a buffer given by value, else to an address of the GPU's.
  void launch(std::span<void* const> buffers, const std::vector<int64_t>& sizes,
              const std::vector<loop::ScalarBits>& params, GpuErrorSlot* errors, int64_t id = 0) const;
  int registers() const;

 private:
  std::shared_ptr<const GpuCode> code_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

/// A slot in memory of the host that GPUs reach.
class GpuErrors {
 public:
  GpuErrors();
  ~GpuErrors() { library::cuda::driver().cuMemFreeHost(slot_); }
  GpuErrors(const GpuErrors&) = delete;
  GpuErrorSlot& operator*() const { return *slot_; }
  GpuErrorSlot* get() const { return slot_; }

 private:
  GpuErrorSlot* slot_ = nullptr;
};

/// Runs the kernel on the GPU. `shift`: elements by which buffers are off an aligned address.
Outcome run_on_gpu(const GpuKernel& kernel, const loop::Kernel& k, const std::vector<Bytes>& buffers,
                   const std::vector<int64_t>& sizes, const std::vector<loop::ScalarBits>& params,
                   int64_t shift = 0);

}  // namespace fl::codegen
