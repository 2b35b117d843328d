// Bodies on a GPU: what a thread computes.
#pragma once
#include <set>

#include "flambeau/codegen/common/body_emitter.h"

namespace fl::codegen {

class GpuBody : public BodyEmitter {
 public:
  /// Where `ordered`, one thread at a time stores to an element, so that nothing is combined atomically.
  GpuBody(const loop::Kernel& k, llvm::Function* function, llvm::IRBuilder<>& builder, const Machine& machine,
          bool ordered);

 protected:
  llvm::Value* call_library(ScalarOp op, DType d, llvm::Value* a, llvm::Value* b, int count) override;
  bool is_contended(const loop::Store& s) const override { return contended_.contains(&s); }
  void combine_atomically(DType d, loop::StoreMode mode, llvm::Value* pointer, const Lanes& value) override;

 private:
  std::set<const loop::Store*> contended_;
};

}  // namespace fl::codegen
