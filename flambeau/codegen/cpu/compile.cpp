#include "flambeau/codegen/cpu/compile.h"

#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "flambeau/base/error.h"
#include "flambeau/base/hash.h"
#include "flambeau/base/parallel.h"
#include "flambeau/codegen/common/engine.h"
#include "flambeau/codegen/cpu/kernel_cache.h"
#include "flambeau/codegen/cpu/nest_facts.h"
#include "flambeau/codegen/cpu/object_cache.h"
#include "flambeau/loop/interpret.h"
#include "flambeau/loop/library_function.h"
#include "flambeau/loop/order.h"

namespace fl::codegen {
namespace {

// Machine operations that are worth waking a thread for.
constexpr int64_t kGrain = 20000;

// What generated code may call: functions for lanes, and those that LLVM itself calls where the instruction
// set has no instruction.
void* resolve(std::string_view name) {
  if (name == "fl_record_failure") return reinterpret_cast<void*>(&fl_record_failure);
  if (auto f = loop::find_library_function(name)) return reinterpret_cast<void*>(f);
  struct Entry {
    std::string_view name;
    void* address;
  };
#define FL_UNARY(function)                                                                   \
  {#function, reinterpret_cast<void*>(static_cast<double (*)(double)>(&::function))}, {      \
#function "f", reinterpret_cast < void*>(static_cast <float (*)(float)>(&::function##f)) \
  }
  static const Entry entries[] = {
      FL_UNARY(floor),
      FL_UNARY(ceil),
      FL_UNARY(trunc),
      FL_UNARY(roundeven),
      {"fma", reinterpret_cast<void*>(static_cast<double (*)(double, double, double)>(&::fma))},
      {"fmaf", reinterpret_cast<void*>(&::fmaf)},
      {"memset", reinterpret_cast<void*>(&::memset)},
      {"memcpy", reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, size_t)>(&::memcpy))},
  };
#undef FL_UNARY
  for (const Entry& e : entries)
    if (e.name == name) return e.address;
  return nullptr;
}

}  // namespace

CompiledKernel::CompiledKernel(const loop::Kernel& k, const std::string& object, const TargetOptions& options)
    : serial_(!options.parallel || loop::has_colliding_stores(k)),
      block_(k.vector == loop::VectorAxis::Outer       ? kVectorBlock
             : k.vector == loop::VectorAxis::OuterTree ? kTreeBlock
                                                       : 1),
      name_(k.name),
      object_(load_object(object, &resolve)) {
  function_ = reinterpret_cast<Function>(object_->address("kernel"));
  plan_ = reinterpret_cast<Plan>(object_->address("plan"));
  for (const loop::Stage& stage : k.stages)
    for (const loop::Assert& a : stage.asserts) checks_.push_back({a.message, k.insts[a.value].dtype});
  if (!checks_.empty()) sizes_ = k.sizes;
}

CompiledKernel::~CompiledKernel() = default;

int64_t CompiledKernel::task_count(const int64_t* sizes) const {
  int64_t plan[2];
  plan_(sizes, plan);
  return plan[0];
}

void CompiledKernel::raise(const ErrorSlot& error, const int64_t* sizes) const {
  const Check& check = checks_.at(static_cast<size_t>(error.check));
  throw loop::OutOfBoundsError(
      loop::failure_message(check.message, check.dtype, error.value, sizes_, {sizes, sizes_.size()}));
}

void CompiledKernel::launch(const LaunchArgs& args) const {
  int64_t plan[2];
  plan_(args.sizes, plan);
  const int64_t points = plan[0], cost = plan[1];
  if (points <= 0) return;
  ErrorSlot error;
  if (serial_ || static_cast<double>(points) * static_cast<double>(cost) < 2 * kGrain) {
    function_(args.buffers, args.sizes, args.params, &error, 0, points);
  } else {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, cost * block_));
    parallel_for((points + block_ - 1) / block_, grain, [&](int64_t begin, int64_t end) {
      function_(args.buffers, args.sizes, args.params, &error, begin * block_,
                std::min(end * block_, points));
    });
  }
  if (error.failed.load(std::memory_order_acquire)) [[unlikely]]
    raise(error, args.sizes);
}

namespace {

KernelCache& memory_cache() {
  static auto* cache = new KernelCache(1000);
  return *cache;
}

// Kernels that differ in their names alone are one.
Hash128 key_of(const loop::Kernel& k, const TargetOptions& options) {
  const std::string text = k.str();
  const std::string_view body = std::string_view(text).substr(text.find('('));
  const Machine& m = machine_for(options.isa);
  return hash128(fmt::format("{}|{}|{}|{}|{}|{}|{}", kCodeVersion, engine_version(), m.triple, m.cpu,
                             m.features, options.parallel, body));
}

}  // namespace

std::shared_ptr<const CompiledKernel> compile_kernel(const loop::Kernel& k, const TargetOptions& options) {
  dump_kernel(k);
  if (!options.cached)
    return std::make_shared<CompiledKernel>(k, make_kernel_object(k, options.isa), options);
  const Hash128 key = key_of(k, options);
  if (auto kernel = memory_cache().find(key)) return kernel;
  ObjectCache disk;
  if (auto object = disk.load(key)) {
    try {
      return memory_cache().keep(key, std::make_shared<CompiledKernel>(k, *object, options));
    } catch (const Error&) {
      // An object that does not link is as good as none.
    }
  }
  const std::string object = make_kernel_object(k, options.isa);
  auto kernel = std::make_shared<CompiledKernel>(k, object, options);
  disk.store(key, object);
  return memory_cache().keep(key, std::move(kernel));
}

std::vector<std::shared_ptr<const CompiledKernel>> compile_kernels(std::span<const loop::Kernel> kernels,
                                                                   const TargetOptions& options) {
  std::vector<std::shared_ptr<const CompiledKernel>> out(kernels.size());
  // The first of each set of equal kernels is compiled, the others take its result.
  std::unordered_map<Hash128, size_t> first;
  std::vector<size_t> to_do, same_as(kernels.size());
  for (size_t n = 0; n < kernels.size(); ++n) {
    const auto [it, is_new] = first.emplace(key_of(kernels[n], options), n);
    same_as[n] = it->second;
    if (is_new) to_do.push_back(n);
  }
  parallel_for(static_cast<int64_t>(to_do.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) out[to_do[n]] = compile_kernel(kernels[to_do[n]], options);
  });
  for (size_t n = 0; n < kernels.size(); ++n) out[n] = out[same_as[n]];
  return out;
}

}  // namespace fl::codegen
