// What programs and eager calls need of a kind of device. The CPU's is there; other backends install theirs.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "flambeau/codegen/common/launch.h"
#include "flambeau/loop/ir.h"
#include "flambeau/runtime/call_arguments.h"

namespace fl::runtime {

/// Launches and calls of a device that were recorded, to be run again as one.
class Recording {
 public:
  virtual ~Recording() = default;
  /// How many kernels were recorded so far.
  virtual int launch_count() const = 0;
  /// The kernel that was recorded as this number gets other arguments from the next run on.
  virtual void change(int number, const codegen::LaunchArgs& args) = 0;
  /// Whether calls now would do what was recorded, for the current stream: settings of libraries are the
  /// same.
  virtual bool is_current() const = 0;
  /// Runs it in the current stream, after what other streams do with the memory that it writes and that was
  /// handed out.
  virtual void run(std::span<void* const> written) = 0;
};

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  /// Whether work of this thread in the current stream can be recorded.
  virtual bool can_record(Device) const { return false; }
  /// Records what `work` puts into the current stream, instead of running it; it gets the recording for
  /// launch_count(). Raises what `work` does, and RuntimeError where something can't be recorded: the host
  /// waits, say. What `work` launches must live as long.
  virtual std::unique_ptr<Recording> record(Device, const std::function<void(const Recording&)>&) {
    return nullptr;
  }
  /// A number for the current stream, other for other streams.
  virtual uint64_t current_queue(Device) const { return 0; }
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
