#include "flambeau/codegen/gpu/compile.h"

#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <unordered_map>

#include "flambeau/base/error.h"
#include "flambeau/base/hash.h"
#include "flambeau/base/parallel.h"
#include "flambeau/codegen/common/engine.h"
#include "flambeau/codegen/cpu/object_cache.h"
#include "flambeau/codegen/gpu/grid.h"
#include "flambeau/codegen/gpu/grid_plan.h"

namespace fl::codegen {
namespace {

// What a launch can take: PTX 8.1 on sm_70 and newer.
constexpr int64_t kParameterBytes = 32764;

// The newest machine of the list that the GPU can run code of.
Machine gpu_machine(const GpuTarget& target) {
  static constexpr int kKnown[] = {80, 86, 87, 89, 90};
  FL_CHECK(target.capability >= kKnown[0], ValueError,
           "expected a GPU of compute capability 8.0 or above, got {}.{}", target.capability / 10,
           target.capability % 10);
  const int* above = std::upper_bound(std::begin(kKnown), std::end(kKnown), target.capability);
  Machine m;
  m.triple = "nvptx64-nvidia-cuda";
  m.cpu = fmt::format("sm_{}", above[-1]);
  m.features = "+ptx81";
  m.vector_bytes = 16;
  m.has_half_conversion = m.has_bfloat_conversion = true;
  m.has_vector_memory = false;
  m.abs_wraps = false;
  return m;
}

void check_parameters(const loop::Kernel& k) {
  int64_t bytes = 0;
  const auto add = [&](int64_t size, int64_t align) { bytes = (bytes + align - 1) / align * align + size; };
  const auto add_value = [&](DType d) { add(size_of(d), size_of(real_dtype(d))); };
  for (const loop::Buffer& b : k.buffers)
    if (b.by_value)
      add_value(b.dtype);
    else
      add(8, 8);
  for (size_t n = 0; n < k.sizes.size(); ++n) add(8, 8);
  for (DType d : k.params) add_value(d);
  add(8, 8);
  add(8, 8);
  FL_CHECK(bytes <= kParameterBytes, ValueError,
           "kernel {} takes {} bytes of arguments ({} buffers, {} sizes, {} parameters): a launch takes {}",
           k.name, bytes, k.buffers.size(), k.sizes.size(), k.params.size(), kParameterBytes);
}

// Kernels that differ in their names alone are one.
Hash128 key_of(const loop::Kernel& k, const GpuTarget& target) {
  const std::string text = k.str();
  const std::string_view body = std::string_view(text).substr(text.find('('));
  const Machine m = gpu_machine(target);
  return hash128(fmt::format("{}|{}|{}|{}|{}|{}|{}", kCodeVersion, engine_version(), m.triple, m.cpu,
                             m.features, target.deterministic, body));
}

class MemoryCache {
 public:
  std::shared_ptr<const GpuCode> find(const Hash128& key) {
    std::lock_guard lock(mutex_);
    auto it = codes_.find(key);
    return it == codes_.end() ? nullptr : it->second;
  }
  /// The code that is kept: an equal one that another thread was first with wins.
  std::shared_ptr<const GpuCode> keep(const Hash128& key, std::shared_ptr<const GpuCode> code) {
    std::lock_guard lock(mutex_);
    return codes_.emplace(key, std::move(code)).first->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Hash128, std::shared_ptr<const GpuCode>> codes_;
};

MemoryCache& memory_cache() {
  static MemoryCache* cache = new MemoryCache;
  return *cache;
}

}  // namespace

GpuCode::GpuCode(const loop::Kernel& k, const GpuTarget& target, std::string ptx)
    : ptx_(std::move(ptx)), name_(k.name), shape_(shape_rule(k, plan_grid(k, target.deterministic))) {
  for (const loop::Stage& stage : k.stages)
    for (const loop::Assert& a : stage.asserts) checks_.push_back({a.message, k.insts[a.value].dtype});
}

std::string make_kernel_ptx(const loop::Kernel& k, const GpuTarget& target) {
  check_parameters(k);
  const Machine machine = gpu_machine(target);
  llvm::LLVMContext context;
  llvm::Module module(k.name, context);
  prepare_module(module, machine);
  emit_grid(k, plan_grid(k, target.deterministic), machine, module);
#ifndef NDEBUG
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  FL_ASSERT(!llvm::verifyModule(module, &stream), "{}\n{}", problem, k.str());
#endif
  return make_assembly(module, machine);
}

std::shared_ptr<const GpuCode> compile_for_gpu(const loop::Kernel& k, const GpuTarget& target) {
  dump_kernel(k);
  const Hash128 key = key_of(k, target);
  if (auto code = memory_cache().find(key)) return code;
  const ObjectCache disk;
  std::optional<std::string> ptx = disk.load(key);
  if (!ptx) {
    ptx = make_kernel_ptx(k, target);
    disk.store(key, *ptx);
  }
  return memory_cache().keep(key, std::make_shared<GpuCode>(k, target, std::move(*ptx)));
}

std::vector<std::shared_ptr<const GpuCode>> compile_for_gpu(std::span<const loop::Kernel> kernels,
                                                            const GpuTarget& target) {
  std::vector<std::shared_ptr<const GpuCode>> out(kernels.size());
  // The first of each set of equal kernels is compiled, the others take its result.
  std::unordered_map<Hash128, size_t> first;
  std::vector<size_t> to_do, same_as(kernels.size());
  for (size_t n = 0; n < kernels.size(); ++n) {
    const auto [it, is_new] = first.emplace(key_of(kernels[n], target), n);
    same_as[n] = it->second;
    if (is_new) to_do.push_back(n);
  }
  parallel_for(static_cast<int64_t>(to_do.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) out[to_do[n]] = compile_for_gpu(kernels[to_do[n]], target);
  });
  for (size_t n = 0; n < kernels.size(); ++n) out[n] = out[same_as[n]];
  return out;
}

}  // namespace fl::codegen
