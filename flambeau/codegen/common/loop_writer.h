// Loops around bodies: what the nests of every kind of machine are written with.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "flambeau/codegen/common/body_emitter.h"

namespace fl::codegen {

class LoopWriter {
 public:
  LoopWriter(const loop::Kernel& k, llvm::Module& module)
      : k_(k), module_(module), context_(module.getContext()), b_(context_) {}

 protected:
  struct Loop {
    llvm::BasicBlock *header, *exit;
    llvm::PHINode* variable;
    llvm::Value *step, *end;
  };

  /// The function "kernel" of these parameters, with the insertion point at its start.
  void start_function(const std::vector<llvm::Type*>& parameters);
  llvm::BasicBlock* block(std::string_view name);
  llvm::Value* number(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }

  /// for (variable = begin; variable < end; variable += step). Two levels: one entered where the loop runs at
  /// all, and its body.
  Loop open_loop(llvm::Value* begin, llvm::Value* end, llvm::Value* step, std::string_view name);
  Loop open_loop(llvm::Value* begin, llvm::Value* end, int64_t step, std::string_view name) {
    return open_loop(begin, end, number(step), name);
  }
  void close_loop(const Loop& l);
  /// Loops from 0 around what follows, and their ends.
  std::vector<Loop> open_loops(const std::vector<sym::Range>& ranges, size_t count);
  void close_loops(std::vector<Loop>& loops);
  /// What follows runs where the condition holds: one level.
  llvm::BasicBlock* open_if(llvm::Value* condition, std::string_view name);
  void close_if(llvm::BasicBlock* after);

  /// Gives the first `count` outer variables their values at a flattened position; the last varies fastest.
  void decode(llvm::Value* position, size_t count);
  /// The level at which loads of a stage may stand, from outside of its inner loops: where the innermost one
  /// that may have no iterations is known to have some.
  int load_floor(const loop::Stage& stage) const;
  /// The number of a stage's first check among those of the kernel.
  int first_check(const loop::Stage& stage) const;

  const loop::Kernel& k_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  std::unique_ptr<BodyEmitter> body_;
};

}  // namespace fl::codegen
