// Kernels as PTX for NVIDIA GPUs. Needs no GPU and no CUDA: the driver makes machine code of the text.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flambeau/codegen/gpu/launch_shape.h"
#include "flambeau/loop/ir.h"
#include "flambeau/loop/scalar_bits.h"

namespace fl::codegen {

struct GpuTarget {
  int capability = 90;         ///< 10 * major + minor; 80 and above.
  bool deterministic = false;  ///< Stores that meet in one element run in order, by one thread.
};

/// Where a kernel reports a failed check, in memory that the host reads after a synchronisation. The first
/// kernel that fails takes the slot.
struct GpuErrorSlot {
  uint32_t state = 0;  ///< 0: nothing failed; 1: taken, being filled; 2: the rest holds
  uint32_t check = 0;  ///< number of GpuCode::checks()
  int64_t kernel = 0;  ///< the id that the launch was given
  loop::ScalarBits value;
};

/// A kernel's machine-independent code and what a launch needs to know. Its function is called "kernel" and
/// takes, in this order: each buffer (a pointer; one that is given by value: the element itself, two numbers
/// together if complex), each size (int64), each parameter (in its memory type), a pointer to a GpuErrorSlot
/// (null where there are no checks is fine), and an int64 that names the launch in it.
class GpuCode {
 public:
  struct Check {
    std::string message;
    DType dtype;
  };
  GpuCode(const loop::Kernel& k, const GpuTarget& target, std::string ptx);

  const std::string& ptx() const { return ptx_; }
  const std::string& name() const { return name_; }
  /// How many blocks and threads run the kernel at these sizes (in the order of its sizes); no blocks: there
  /// is nothing to do. Cheap, and safe to call from several threads.
  LaunchShape shape(const int64_t* sizes) const { return shape_(sizes); }
  /// What failed_check numbers mean; loop::failure_message() makes the text.
  const std::vector<Check>& checks() const { return checks_; }

 private:
  std::string ptx_, name_;
  ShapeRule shape_;
  std::vector<Check> checks_;
};

/// Compiles a kernel, or finds it in the caches in memory and on disk. Raises ValueError where its arguments
/// are more than a launch can take.
std::shared_ptr<const GpuCode> compile_for_gpu(const loop::Kernel& k, const GpuTarget& target = {});
/// Several at once, in threads; equal kernels are compiled once.
std::vector<std::shared_ptr<const GpuCode>> compile_for_gpu(std::span<const loop::Kernel> kernels,
                                                            const GpuTarget& target = {});

/// The PTX text of a kernel, from no cache.
std::string make_kernel_ptx(const loop::Kernel& k, const GpuTarget& target);

}  // namespace fl::codegen
