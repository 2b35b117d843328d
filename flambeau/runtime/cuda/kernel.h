// Kernels on a GPU: machine code loaded by the driver, launched into the current stream.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flambeau/base/small_vector.h"
#include "flambeau/codegen/common/launch.h"
#include "flambeau/codegen/gpu/compile.h"
#include "flambeau/runtime/cuda/device.h"

namespace fl::runtime::cuda {

class Kernel final : public codegen::Launchable, public std::enable_shared_from_this<Kernel> {
 public:
  Kernel(const loop::Kernel& k, std::shared_ptr<const codegen::GpuCode> code, int device);
  ~Kernel() override;

  void launch(const codegen::LaunchArgs& args) const override;
  /// Other arguments for a launch that is a node of a graph.
  void change(CUgraphExec graph, CUgraphNode node, const codegen::LaunchArgs& args) const;

  const std::string& name() const override { return code_->name(); }
  /// By buffer: the bytes of an element that is given by value; 0 for addresses.
  const std::vector<size_t>& value_bytes() const { return value_bytes_; }
  size_t size_count() const { return sizes_; }
  size_t param_count() const { return params_; }

 private:
  using Values = SmallVector<const void*, 32>;
  /// Addresses of the function's arguments. slot: of the last but one.
  void list(const codegen::LaunchArgs& args, const codegen::GpuErrorSlot*& slot, Values& out) const;
  std::string cubin() const;
  void load(const loop::Kernel& k);
  [[noreturn]] void fail(CUresult result, const char* call) const;

  std::shared_ptr<const codegen::GpuCode> code_;
  int device_;
  std::vector<size_t> value_bytes_;
  size_t sizes_, params_ = 0;
  bool checks_ = false;
  int64_t number_ = 0;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

/// Compiles kernels for a device, or finds them compiled. Those that have no code for GPUs run on the CPU
/// (host_kernel.h).
std::vector<std::shared_ptr<const codegen::Launchable>> compile(std::span<const loop::Kernel> kernels,
                                                                int device);

}  // namespace fl::runtime::cuda
