// Compiled kernels of this process, by what they are. Tests: tests/codegen/cache_test.cpp.
#pragma once
#include <memory>
#include <mutex>
#include <unordered_map>

#include "flambeau/base/hash.h"

namespace fl::codegen {

class CompiledKernel;

/// Keeps every kernel that a program holds, and about `spare` others: the most recently used ones.
class KernelCache {
 public:
  explicit KernelCache(size_t spare) : spare_(spare), trim_at_(2 * spare) {}
  std::shared_ptr<const CompiledKernel> find(const Hash128& key);
  /// The kernel that is kept: an equal one that another thread was first with wins.
  std::shared_ptr<const CompiledKernel> keep(const Hash128& key,
                                             std::shared_ptr<const CompiledKernel> kernel);
  size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<const CompiledKernel> kernel;
    int64_t used = 0;  // when
  };
  using Kernels = std::unordered_map<Hash128, Entry>;
  void trim();

  const size_t spare_;
  mutable std::mutex mutex_;
  Kernels kernels_;
  size_t trim_at_;  // the size at which there may be too many
  int64_t now_ = 0;
};

}  // namespace fl::codegen
