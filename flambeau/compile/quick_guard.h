// The quick way to know that a capture fits a call.
#pragma once
#include <vector>

#include "flambeau/trace/trace.h"

namespace fl {

/// A subset of trace::why_not as flat checks: accepts() is true only where why_not() is empty. It knows plain
/// cases (no shared inputs, contiguous or constant strides, sizes that are numbers or symbols, no guards on
/// sizes); for others it says no, and why_not decides.
class QuickGuard {
 public:
  /// Storages of arguments that were accepted: known not to be shared.
  using Storages = std::vector<const Storage*>;

  explicit QuickGuard(const trace::TracedProgram& p);
  bool accepts(const trace::TracedProgram& p, const Tensors& args) const;
  /// The same; compares only storages that are not those of the last call that was accepted.
  bool accepts(const trace::TracedProgram& p, const Tensors& args, Storages& last) const;

 private:
  struct Input {
    DType dtype;
    Device device;
    bool requires_grad, is_leaf, contiguous;
    std::vector<int64_t> sizes;    // a number, or -1 - k for symbol k
    std::vector<int64_t> strides;  // where not contiguous
    int64_t lower = 2;             // of symbols
  };
  bool fits(const trace::TracedProgram& p, const Tensors& args) const;
  static bool fits(const Input& want, const Tensor& t, int64_t* symbols);

  bool plain_ = true;
  std::vector<Input> inputs_;
};

}  // namespace fl
