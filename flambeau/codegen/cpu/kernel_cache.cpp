#include "flambeau/codegen/cpu/kernel_cache.h"

#include <algorithm>
#include <vector>

#include "flambeau/codegen/cpu/compile.h"

namespace fl::codegen {

std::shared_ptr<const CompiledKernel> KernelCache::find(const Hash128& key) {
  std::lock_guard lock(mutex_);
  const auto it = kernels_.find(key);
  if (it == kernels_.end()) return nullptr;
  it->second.used = ++now_;
  return it->second.kernel;
}

std::shared_ptr<const CompiledKernel> KernelCache::keep(const Hash128& key,
                                                        std::shared_ptr<const CompiledKernel> kernel) {
  std::lock_guard lock(mutex_);
  Entry& entry = kernels_.try_emplace(key).first->second;
  if (!entry.kernel) entry.kernel = std::move(kernel);
  entry.used = ++now_;
  const auto kept = entry.kernel;  // holds it while others go
  if (kernels_.size() >= trim_at_) trim();
  return kept;
}

size_t KernelCache::size() const {
  std::lock_guard lock(mutex_);
  return kernels_.size();
}

void KernelCache::trim() {
  std::vector<Kernels::iterator> unused;
  for (auto it = kernels_.begin(); it != kernels_.end(); ++it)
    if (it->second.kernel.use_count() == 1) unused.push_back(it);
  if (unused.size() > spare_) {
    const auto last = unused.end() - static_cast<std::ptrdiff_t>(spare_);
    std::nth_element(unused.begin(), last, unused.end(),
                     [](const auto& a, const auto& b) { return a->second.used < b->second.used; });
    for (auto it = unused.begin(); it != last; ++it) kernels_.erase(*it);
  }
  // As many again have to come before the next look at all of them is worth its time.
  trim_at_ = kernels_.size() + std::max(spare_, kernels_.size());
}

}  // namespace fl::codegen
