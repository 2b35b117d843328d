// GPUs as devices of programs and eager calls.
#include "flambeau/runtime/cuda/runtime.h"
#include "flambeau/op/routine_query.h"
#include "flambeau/runtime/cuda/allocator.h"
#include "flambeau/runtime/cuda/copy.h"
#include "flambeau/runtime/cuda/graph.h"
#include "flambeau/runtime/cuda/kernel.h"
#include "flambeau/runtime/cuda/library_calls.h"
#include "flambeau/runtime/cuda/program_recording.h"
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
    if (Graph* graph = recording(); graph && other.type == DeviceType::CPU && is_recorded(s)) [[unlikely]]
      return record_copy(*graph, s, to, from, bytes, wait);
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
  bool can_record(Device device) const override { return can_record_program(device.index); }
  std::unique_ptr<Recording> record(Device device,
                                    const std::function<void(const Recording&)>& work) override {
    return record_program(device.index, work);
  }
  uint64_t current_queue(Device device) const override {
    return reinterpret_cast<uint64_t>(current_stream(device.index).handle);
  }

 private:
  // Between the device and the host, at every launch of the graph.
  static void record_copy(Graph& graph, Stream s, void* to, const void* from, size_t bytes, bool wait) {
    for (void* host : {to, const_cast<void*>(from)})
      if (is_pinned(host)) graph.keep(hold_pinned(host));
    if (!is_pinned(to) && !is_pinned(from))
      refuse_in_recording("this copies between the device and memory of the host that is not page-locked");
    if (wait) refuse_in_recording("this waits for a copy between the device and the host");
    copy_bytes(s, to, from, bytes);
  }
};

Allocator& allocator_of(int index) { return device_allocator(index); }

}  // namespace

void install() {
  static CudaRuntime runtime;
  install_allocator(DeviceType::CUDA, &allocator_of);
  install_runtime(DeviceType::CUDA, &runtime);
  install_routine_query(DeviceType::CUDA, &has_routine);
}

}  // namespace fl::runtime::cuda
