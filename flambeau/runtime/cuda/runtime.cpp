// GPUs as devices of programs and eager calls.
#include "flambeau/runtime/cuda/runtime.h"
#include "flambeau/runtime/cuda/allocator.h"
#include "flambeau/runtime/cuda/copy.h"
#include "flambeau/runtime/cuda/kernel.h"
#include "flambeau/runtime/cuda/library_calls.h"
#include "flambeau/runtime/cuda/reports.h"
#include "flambeau/runtime/device_runtime.h"

namespace fl::runtime::cuda {
namespace {

class CudaRuntime final : public DeviceRuntime {
 public:
  std::vector<std::shared_ptr<const codegen::Launchable>> compile(std::span<const loop::Kernel> kernels,
                                                                  Device device) override {
    return cuda::compile(kernels, device.index);
  }
  PreparedCall prepare(const CallArguments& call, Device device) override {
    return prepare_call(call, device.index);
  }
  void enter(Device device) override { activate(device.index); }
  void copy(Device device, void* to, const void* from, size_t bytes, Device other, bool wait) override {
    const bool is_peer = other.type == DeviceType::CUDA && other.index != device.index;
    if (is_peer) synchronize(current_stream(other.index));  // what fills `from` comes first
    const Stream s = current_stream(device.index);
    copy_bytes(s, to, from, bytes);
    if (is_peer) return synchronize(s);
    if (other.type != DeviceType::CPU) return;
    // Pageable memory has been read, or written, when copy_bytes() returns; page-locked memory is in use.
    for (void* host : {to, const_cast<void*>(from)}) {
      if (!is_pinned(host)) continue;
      if (wait) return synchronize(s);
      record_pinned(host, s);
    }
    if (wait) raise_reports(device.index);
  }
};

Allocator& allocator_of(int index) { return device_allocator(index); }

}  // namespace

void install() {
  static CudaRuntime runtime;
  install_allocator(DeviceType::CUDA, &allocator_of);
  install_runtime(DeviceType::CUDA, &runtime);
}

}  // namespace fl::runtime::cuda
