// The short way of elementwise calls: all tensors contiguous and of one size, or numbers.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "flambeau/op/op.h"

namespace fl::runtime {

/// The kernels of one operator. Looking one up takes no lock.
class FlatKernels {
 public:
  ~FlatKernels();
  /// Runs the call if it is of this kind, into `target` or into a new tensor in outs[0]; false: not of this
  /// kind.
  bool run(const OpInfo& op, const Value* args, Device device, const Tensor* target, Value* outs);

 private:
  struct Entry;
  const Entry* compile(const OpInfo& op, const Value* args, uint64_t key, const Tensor& like,
                       const Tensor* target);
  std::atomic<Entry*> entries_{nullptr};  // a list that only grows
  std::mutex mutex_;
};

}  // namespace fl::runtime
