#include "flambeau/runtime/cuda/host_kernel.h"

#include <map>
#include <vector>

#include "flambeau/codegen/cpu/compile.h"
#include "flambeau/runtime/cuda/allocator.h"
#include "flambeau/runtime/cuda/copy.h"
#include "flambeau/runtime/cuda/graph.h"

namespace fl::runtime::cuda {
namespace {

class HostKernel final : public codegen::Launchable {
 public:
  HostKernel(const loop::Kernel& k, int device) : kernel_(codegen::compile_kernel(k)), device_(device) {
    for (const loop::Buffer& b : k.buffers) buffers_.push_back({b.by_value, b.written});
  }

  void launch(const codegen::LaunchArgs& args) const override {
    struct Copy {
      std::vector<char> bytes;
      bool written = false;
    };
    if (recording()) refuse_in_recording(fmt::format("kernel {} runs on the CPU", name()));
    std::map<char*, Copy> copies;  // of whole blocks: buffers may share one
    const Stream s = current_stream(device_);
    std::vector<void*> pointers;
    for (size_t b = 0; b < buffers_.size(); ++b) {
      auto* at = static_cast<char*>(args.buffers[b]);
      if (buffers_[b].by_value || !at) {
        pointers.push_back(at);
        continue;
      }
      const auto [block, size] = block_of(device_, at);
      Copy& copy = copies[block];
      if (copy.bytes.empty()) {
        copy.bytes.resize(size);
        copy_bytes(s, copy.bytes.data(), block, size);
      }
      copy.written |= buffers_[b].written;
      pointers.push_back(copy.bytes.data() + (at - block));
    }
    synchronize(s);
    kernel_->launch({pointers.data(), args.sizes, args.params});
    for (auto& [block, copy] : copies)
      if (copy.written) copy_bytes(s, block, copy.bytes.data(), copy.bytes.size());
    synchronize(s);
  }
  const std::string& name() const override { return kernel_->name(); }

 private:
  struct Buffer {
    bool by_value, written;
  };
  std::shared_ptr<const codegen::CompiledKernel> kernel_;
  std::vector<Buffer> buffers_;
  int device_;
};

}  // namespace

std::shared_ptr<const codegen::Launchable> host_kernel(const loop::Kernel& k, int device) {
  return std::make_shared<HostKernel>(k, device);
}

}  // namespace fl::runtime::cuda
