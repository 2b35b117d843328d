#include "flambeau/codegen/common/loop_writer.h"

namespace fl::codegen {

using llvm::BasicBlock;
using llvm::Value;

void LoopWriter::start_function(const std::vector<llvm::Type*>& parameters) {
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), parameters, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "kernel", module_);
  b_.SetInsertPoint(BasicBlock::Create(context_, "entry", function_));
}

BasicBlock* LoopWriter::block(std::string_view name) {
  return BasicBlock::Create(context_, llvm::StringRef(name.data(), name.size()), function_);
}

LoopWriter::Loop LoopWriter::open_loop(Value* begin, Value* end, Value* step, std::string_view name) {
  BasicBlock *guarded = block("enter"), *header = block(name), *exit = block("after");
  BasicBlock* before = b_.GetInsertBlock();
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), guarded, exit);
  body_->open_level(before);
  b_.SetInsertPoint(guarded);
  b_.CreateBr(header);
  body_->open_level(guarded);
  b_.SetInsertPoint(header);
  llvm::PHINode* variable = b_.CreatePHI(b_.getInt64Ty(), 2);
  variable->addIncoming(begin, guarded);
  return {header, exit, variable, step, end};
}

void LoopWriter::close_loop(const Loop& l) {
  Value* next = b_.CreateAdd(l.variable, l.step);
  l.variable->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, l.end), l.header, l.exit);
  body_->close_level_of_body();
  body_->close_level_of_body();
  b_.SetInsertPoint(l.exit);
}

std::vector<LoopWriter::Loop> LoopWriter::open_loops(const std::vector<sym::Range>& ranges, size_t count) {
  std::vector<Loop> loops;
  for (size_t n = 0; n < count; ++n) {
    loops.push_back(open_loop(number(0), body_->scalar(ranges[n].size), 1, "inner"));
    body_->set_variable(ranges[n].variable, loops.back().variable);
  }
  return loops;
}

void LoopWriter::close_loops(std::vector<Loop>& loops) {
  while (!loops.empty()) {
    close_loop(loops.back());
    loops.pop_back();
  }
}

BasicBlock* LoopWriter::open_if(Value* condition, std::string_view name) {
  BasicBlock *then = block(name), *after = block("after");
  BasicBlock* before = b_.GetInsertBlock();
  b_.CreateCondBr(condition, then, after);
  body_->open_level(before);
  b_.SetInsertPoint(then);
  return after;
}

void LoopWriter::close_if(BasicBlock* after) {
  b_.CreateBr(after);
  body_->close_level_of_body();
  b_.SetInsertPoint(after);
}

void LoopWriter::decode(Value* position, size_t count) {
  for (size_t n = count; n-- > 0;) {
    Value* v = position;
    if (n > 0) {
      Value* size = body_->scalar(k_.outer[n].size);
      v = b_.CreateURem(position, size);
      position = b_.CreateUDiv(position, size);
    }
    body_->set_variable(k_.outer[n].variable, v);
  }
}

int LoopWriter::load_floor(const loop::Stage& stage) const {
  size_t loops = stage.inner.size();
  while (loops > 1 && sym::known_nonnegative(stage.inner[loops - 1].size - 1)) --loops;
  return body_->level() + 2 * static_cast<int>(loops) - 1;
}

int LoopWriter::first_check(const loop::Stage& stage) const {
  int first = 0;
  for (const loop::Stage& s : k_.stages) {
    if (&s == &stage) break;
    first += static_cast<int>(s.asserts.size());
  }
  return first;
}

}  // namespace fl::codegen
