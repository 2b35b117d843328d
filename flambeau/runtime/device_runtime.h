// What programs and eager calls need of a kind of device. The CPU's is there; other backends install theirs.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "flambeau/codegen/common/launch.h"
#include "flambeau/loop/ir.h"
#include "flambeau/runtime/call_arguments.h"

namespace fl::runtime {

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  /// Machine code for a device: several kernels at once, equal ones once.
  virtual std::vector<std::shared_ptr<const codegen::Launchable>> compile(
      std::span<const loop::Kernel> kernels, Device device) = 0;
  /// The routine of a library call for operands and results on a device.
  virtual PreparedCall prepare(const CallArguments& call, Device device) = 0;
  /// Before launches and calls of this thread on the device.
  virtual void enter(Device device) = 0;
  /// Copies bytes between memory of `device`, which this is the runtime of, and that of `other`. Has happened
  /// when it returns if `wait`, else after what was put into the device's current stream.
  virtual void copy(Device device, void* to, const void* from, size_t bytes, Device other, bool wait) = 0;
};

/// Raises RuntimeError where the device has none.
DeviceRuntime& runtime_of(Device d);
/// Called once, before the first tensor of such a device.
void install_runtime(DeviceType type, DeviceRuntime* r);

/// The elements in another dtype (or the same) on another device, in the same layout where that is dense.
/// What the current stream does next finds them there; unless `non_blocking` the host may use its side at
/// once, too.
Tensor moved(const Tensor& t, DType dtype, Device device, bool non_blocking = false);
/// Writes the elements, which are broadcast to the target's sizes, to a target on another device.
void move_into(const Tensor& target, const Tensor& t, bool non_blocking);

}  // namespace fl::runtime
