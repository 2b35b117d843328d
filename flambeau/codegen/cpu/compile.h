// Kernels as machine code for this processor.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flambeau/codegen/common/launch.h"
#include "flambeau/codegen/common/machine.h"
#include "flambeau/codegen/cpu/failure.h"
#include "flambeau/loop/ir.h"

namespace fl::codegen {

class LoadedObject;

struct TargetOptions {
  Isa isa = Isa::Host;
  bool parallel = true;  ///< Large launches use the threads of base/parallel.h.
  bool cached = true;    ///< Kernels come from, and go to, the caches in memory and on disk.
};

class CompiledKernel final : public Launchable {
 public:
  /// Of an object that make_kernel_object() wrote for k.
  CompiledKernel(const loop::Kernel& k, const std::string& object, const TargetOptions& options);
  ~CompiledKernel() override;

  /// Runs the kernel. Raises IndexError with the first failed check's message, after everything has run.
  /// Allocates nothing and takes no lock.
  void launch(const LaunchArgs& args) const override;
  /// Points of the flattened outer loops.
  int64_t task_count(const int64_t* sizes) const;
  const std::string& name() const override { return name_; }

 private:
  using Function = void (*)(void* const*, const int64_t*, const ScalarBits*, ErrorSlot*, int64_t, int64_t);
  using Plan = void (*)(const int64_t* sizes, int64_t* out);
  [[noreturn]] void raise(const ErrorSlot& error, const int64_t* sizes) const;

  Function function_ = nullptr;
  Plan plan_ = nullptr;
  bool serial_;
  int64_t block_;  // launches divide the points in multiples of it
  std::string name_;
  std::unique_ptr<LoadedObject> object_;
  struct Check {
    std::string message;
    DType dtype;
  };
  std::vector<Check> checks_;
  std::vector<sym::Expr> sizes_;  // symbols of the sizes, for messages
};

/// Compiles a kernel, or finds it in the caches.
std::shared_ptr<const CompiledKernel> compile_kernel(const loop::Kernel& k,
                                                     const TargetOptions& options = {});
/// Several at once, in threads; equal kernels are compiled once.
std::vector<std::shared_ptr<const CompiledKernel>> compile_kernels(std::span<const loop::Kernel> kernels,
                                                                   const TargetOptions& options = {});

/// The object file for k.
std::string make_kernel_object(const loop::Kernel& k, Isa isa);

}  // namespace fl::codegen
