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
  llvm::Value* round_to_half(DType to, llvm::Value* x, int count) override;
  llvm::Value* multiply_words(llvm::Value* a, llvm::Value* b, bool high) override;
  bool is_contended(const loop::Store& s) const override { return contended_.contains(&s); }
  void combine_atomically(DType d, loop::StoreMode mode, llvm::Value* pointer, const Lanes& value) override;

 private:
  /// f on each lane, or on the scalars.
  template <class F>
  llvm::Value* each_lane(llvm::Value* a, llvm::Value* b, F&& f);
  llvm::Value* instruction(const char* text, const char* operands, llvm::Type* result, llvm::Value* a,
                           llvm::Value* b);

  std::set<const loop::Store*> contended_;
};

}  // namespace fl::codegen
