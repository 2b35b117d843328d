// Memory of a GPU for library calls, and operands copied there because the library does not take their
// layout.
#pragma once
#include <optional>

#include "flambeau/library/cuda/device_workspace.h"
#include "flambeau/library/library.h"
#include "flambeau/runtime/library_calls.h"
#include "flambeau/tensor/device.h"

namespace fl::runtime::cuda {

/// None for a dtype that the libraries do not compute in.
std::optional<library::ScalarKind> library_kind(DType dtype);

/// The scratch memory of the device's current stream.
class StreamWorkspace final : public library::cuda::DeviceWorkspace {
 public:
  explicit StreamWorkspace(int device) : device_(device) {}
  void* bytes(int64_t count) override;

 private:
  int device_;
};

/// Memory for one call; what is put on the current stream until the end of this object may use it.
class StagingMemory {
 public:
  StagingMemory(int device, int64_t bytes);  ///< Takes none for 0.
  ~StagingMemory();
  StagingMemory(const StagingMemory&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  int device_;
  int64_t bytes_;
  void* data_ = nullptr;
};

/// One operand as the library sees it: in place, or in staging memory with other strides.
class DeviceOperand {
 public:
  DeviceOperand(int device, OperandLayout layout);
  /// Moves the operand behind the `total` bytes of staging memory that are taken.
  void stage(std::vector<int64_t> strides, int64_t& total);
  /// The same with larger sizes, which `strides` has to hold without gaps. What is added is not written
  /// unless `zeros`, when read() makes it 0.
  void stage_larger(std::vector<int64_t> sizes, std::vector<int64_t> strides, bool zeros, int64_t& total);

  const OperandLayout& layout() const { return layout_; }
  int64_t bytes() const;
  /// An input's address for the library; copies where it is staged.
  void* read(void* operand, const StagingMemory& memory) const;
  /// A result's address for the library; store() afterwards copies it to where it belongs.
  void* target(void* result, const StagingMemory& memory) const;
  void store(void* result, const StagingMemory& memory) const;

 private:
  void clear_added(char* place) const;
  OperandLayout within() const;  ///< the given elements where they are staged

  Device device_;
  OperandLayout given_, layout_;
  int64_t offset_ = -1;  // -1: in place
  bool zeros_ = false;
};

}  // namespace fl::runtime::cuda
