#include "flambeau/runtime/device_runtime.h"

#include <array>
#include <atomic>
#include <cstring>

#include "flambeau/codegen/cpu/compile.h"

namespace fl::runtime {
namespace {

class CpuRuntime final : public DeviceRuntime {
 public:
  std::vector<std::shared_ptr<const codegen::Launchable>> compile(std::span<const loop::Kernel> kernels,
                                                                  Device) override {
    const auto compiled = codegen::compile_kernels(kernels);
    return {compiled.begin(), compiled.end()};
  }
  PreparedCall prepare(const CallArguments& call, Device) override { return prepare_library_call(call); }
  void enter(Device) override {}
  void copy(Device, void* to, const void* from, size_t bytes, Device, bool) override {
    std::memcpy(to, from, bytes);
  }
};

std::array<std::atomic<DeviceRuntime*>, 3>& installed() {
  static CpuRuntime cpu;
  static std::array<std::atomic<DeviceRuntime*>, 3> table{&cpu};
  return table;
}

}  // namespace

DeviceRuntime& runtime_of(Device d) {
  DeviceRuntime* r = installed()[static_cast<size_t>(d.type)].load(std::memory_order_acquire);
  FL_CHECK(r, RuntimeError, "nothing runs on device {}: expected a backend for it to be loaded", d.str());
  return *r;
}

void install_runtime(DeviceType type, DeviceRuntime* r) {
  installed()[static_cast<size_t>(type)].store(r, std::memory_order_release);
}

}  // namespace fl::runtime
