#include "flambeau/runtime/cuda/kernel.h"

#include <map>
#include <mutex>

#include "flambeau/base/option.h"
#include "flambeau/base/parallel.h"
#include "flambeau/codegen/cpu/object_cache.h"
#include "flambeau/library/cuda/assembler.h"
#include "flambeau/runtime/cuda/graph.h"
#include "flambeau/runtime/cuda/host_kernel.h"
#include "flambeau/runtime/cuda/reports.h"

namespace fl::runtime::cuda {

using codegen::GpuCode;
using library::cuda::driver;

namespace {

bool blocking() {
  static const bool set = option("CUDA_LAUNCH_BLOCKING") == "1";
  return set;
}

// The kernel's text in front, as comments: for who looks at the loaded image.
std::string image(const loop::Kernel& k, const std::string& ptx) {
  std::string out = "//";
  for (char c : k.str()) {
    out += c;
    if (c == '\n') out += "//";
  }
  return out + "\n\n" + ptx;
}

}  // namespace

Kernel::Kernel(const loop::Kernel& k, std::shared_ptr<const GpuCode> code, int device)
    : code_(std::move(code)), device_(device), sizes_(k.sizes.size()), params_(k.params.size()) {
  for (const loop::Buffer& b : k.buffers)
    value_bytes_.push_back(b.by_value ? static_cast<size_t>(size_of(b.dtype)) : 0);
  checks_ = !code_->checks().empty();
  if (checks_) number_ = number_kernel(code_);
  activate(device);
  load(k);
}

Kernel::~Kernel() {
  try {
    activate(device_);  // a module belongs to the current context
    const UnrecordedCalls allowed;
    driver().cuModuleUnload(module_);
  } catch (const Error&) {
    // The process ends, and the driver has gone before.
  }
}

void Kernel::list(const codegen::LaunchArgs& args, const codegen::GpuErrorSlot*& slot, Values& out) const {
  for (size_t b = 0; b < value_bytes_.size(); ++b)
    out.push_back(value_bytes_[b] ? args.buffers[b] : static_cast<const void*>(&args.buffers[b]));
  for (size_t s = 0; s < sizes_; ++s) out.push_back(&args.sizes[s]);
  for (size_t p = 0; p < params_; ++p) out.push_back(&args.params[p]);
  slot = checks_ ? report_slot(device_) : nullptr;
  out.push_back(&slot);
  out.push_back(&number_);
}

void Kernel::launch(const codegen::LaunchArgs& args) const {
  const codegen::LaunchShape shape = code_->shape(args.sizes);
  if (shape.blocks == 0) return;
  Values values;
  const codegen::GpuErrorSlot* slot = nullptr;
  list(args, slot, values);
  const Stream s = current_stream(device_);
  const CUresult result =
      driver().cuLaunchKernel(function_, shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared_bytes,
                              s.handle, const_cast<void**>(values.data()), nullptr);
  if (result != CUDA_SUCCESS) [[unlikely]]
    fail(result, "cuLaunchKernel");
  if (Graph* graph = recording()) [[unlikely]]
    return graph->note_launch(shared_from_this(), s, args);
  if (blocking()) synchronize(s);
}

void Kernel::change(CUgraphExec graph, CUgraphNode node, const codegen::LaunchArgs& args) const {
  const codegen::LaunchShape shape = code_->shape(args.sizes);
  FL_ASSERT(shape.blocks > 0, "kernel {} of a graph would have nothing to do", name());
  Values values;
  const codegen::GpuErrorSlot* slot = nullptr;
  list(args, slot, values);
  CUDA_KERNEL_NODE_PARAMS p{};
  p.func = function_;
  p.gridDimX = shape.blocks;
  p.blockDimX = shape.threads;
  p.gridDimY = p.gridDimZ = p.blockDimY = p.blockDimZ = 1;
  p.sharedMemBytes = shape.shared_bytes;
  p.kernelParams = const_cast<void**>(values.data());
  if (const CUresult result = driver().cuGraphExecKernelNodeSetParams(graph, node, &p);
      result != CUDA_SUCCESS)
    fail(result, "cuGraphExecKernelNodeSetParams");
}

// Machine code from the cache on disk or from nvJitLink; empty where the driver has to make it.
std::string Kernel::cubin() const {
  const std::string assembler = library::cuda::assembler_version();
  if (assembler.empty()) return {};
  const DeviceFacts& f = facts(device_);
  const int capability = 10 * f.major + f.minor;
  const codegen::ObjectCache disk;
  const Hash128 key = hash128(fmt::format("cubin|{}|{}|{}", assembler, capability, code_->ptx()));
  if (auto known = disk.load(key)) return *known;
  std::string made = library::cuda::assemble(code_->ptx(), capability);
  if (!made.empty()) disk.store(key, made);
  return made;
}

void Kernel::load(const loop::Kernel& k) {
  const UnrecordedCalls allowed;
  if (const std::string code = cubin();
      !code.empty() &&
      driver().cuModuleLoadDataEx(&module_, code.data(), 0, nullptr, nullptr) == CUDA_SUCCESS) {
    FL_CUDA(cuModuleGetFunction, &function_, module_, "kernel");
    return;
  }
  const std::string text = image(k, code_->ptx());
  std::vector<char> log(8192);
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  const CUresult result =
      driver().cuModuleLoadDataEx(&module_, text.c_str(), std::size(options), options, values);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) library::cuda::raise_error(result, "cuModuleLoadDataEx");
  FL_ASSERT(result == CUDA_SUCCESS, "the driver refuses the PTX of kernel {} (error {}): {}", name(),
            static_cast<int>(result), log.data());
  FL_CUDA(cuModuleGetFunction, &function_, module_, "kernel");
}

void Kernel::fail(CUresult result, const char* call) const {
  try {
    library::cuda::raise_error(result, call);
  } catch (const Error& e) {
    FL_RAISE(RuntimeError, "kernel {} on cuda:{}: {}", name(), device_, e.message());
  }
}

namespace {

/// Kernels that something holds, by their code: equal ones are loaded once.
class Loaded {
 public:
  std::shared_ptr<const Kernel> find(const loop::Kernel& k, const std::shared_ptr<const GpuCode>& code,
                                     int device) {
    const std::pair<const GpuCode*, int> key{code.get(), device};
    std::shared_ptr<Entry> entry;
    {
      std::lock_guard lock(mutex_);
      if (entries_.size() >= prune_at_) prune();
      std::shared_ptr<Entry>& known = entries_[key];
      if (!known) known = std::make_shared<Entry>();
      entry = known;
    }
    std::lock_guard lock(entry->mutex);  // of this kernel alone: others load beside it
    if (auto kernel = entry->kernel.lock()) return kernel;
    auto kernel = std::make_shared<const Kernel>(k, code, device);
    entry->kernel = kernel;
    return kernel;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::weak_ptr<const Kernel> kernel;
  };
  // Drops entries whose kernels are gone and that no thread is loading.
  void prune() {
    std::erase_if(entries_,
                  [](const auto& e) { return e.second.use_count() == 1 && e.second->kernel.expired(); });
    prune_at_ = 2 * entries_.size() + 64;
  }

  std::mutex mutex_;
  std::map<std::pair<const GpuCode*, int>, std::shared_ptr<Entry>> entries_;
  size_t prune_at_ = 64;
};

Loaded& loaded() {
  static Loaded& all = *new Loaded;
  return all;
}

}  // namespace

std::vector<std::shared_ptr<const codegen::Launchable>> compile(std::span<const loop::Kernel> kernels,
                                                                int device) {
  const DeviceFacts& f = facts(device);
  const codegen::GpuTarget target{.capability = 10 * f.major + f.minor};
  std::vector<std::shared_ptr<const codegen::Launchable>> out(kernels.size());
  // The driver makes machine code of PTX, which takes longer than making the PTX.
  parallel_for(static_cast<int64_t>(kernels.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const loop::Kernel& k = kernels[static_cast<size_t>(n)];
      try {
        out[static_cast<size_t>(n)] = loaded().find(k, codegen::compile_for_gpu(k, target), device);
      } catch (const NotImplementedError&) {
        out[static_cast<size_t>(n)] = host_kernel(k, device);
      }
    }
  });
  return out;
}

}  // namespace fl::runtime::cuda
