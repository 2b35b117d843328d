#include "flambeau/codegen/gpu/gpu_body.h"

#include <llvm/IR/InlineAsm.h>

#include "flambeau/base/error.h"
#include "flambeau/codegen/gpu/device_functions.h"
#include "flambeau/loop/order.h"

namespace fl::codegen {

using llvm::Value;

GpuBody::GpuBody(const loop::Kernel& k, llvm::Function* function, llvm::IRBuilder<>& builder,
                 const Machine& machine, bool ordered)
    : BodyEmitter(k, function, builder, machine) {
  if (ordered) return;
  for (const loop::Stage& stage : k.stages)
    for (const loop::Store& s : stage.stores)
      if (s.mode != loop::StoreMode::Set && loop::may_collide(k, stage, s)) contended_.insert(&s);
}

void GpuBody::combine_atomically(DType d, loop::StoreMode mode, Value* pointer, const Lanes& value) {
  llvm::Function* f = atomic_combine(*function_->getParent(), machine_, d, mode);
  std::vector<Value*> arguments{pointer, value.re};
  if (value.im) arguments.push_back(value.im);
  b_.CreateCall(f, arguments);
}

Value* GpuBody::call_library(ScalarOp op, DType d, Value* a, Value* b, int) {
  FL_CHECK(op == ScalarOp::Pow && is_integral(d), NotImplementedError, "{} of {} has no GPU code", name(op),
           name(d));
  llvm::Function* f = integer_power(*function_->getParent(), d);
  return each_lane(a, b, [&](Value* x, Value* y) { return b_.CreateCall(f, {x, y}); });
}

template <class F>
Value* GpuBody::each_lane(Value* a, Value* b, F&& f) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(a->getType());
  if (!type) return f(a, b);
  Value* out = nullptr;
  for (uint64_t n = 0; n < type->getNumElements(); ++n) {
    Value* one = f(b_.CreateExtractElement(a, n), b_.CreateExtractElement(b, n));
    if (!out)
      out = llvm::PoisonValue::get(llvm::FixedVectorType::get(one->getType(), type->getNumElements()));
    out = b_.CreateInsertElement(out, one, n);
  }
  return out;
}

Value* GpuBody::instruction(const char* text, const char* operands, llvm::Type* result, Value* a, Value* b) {
  auto* type = llvm::FunctionType::get(result, {a->getType(), b->getType()}, false);
  llvm::CallInst* call = b_.CreateCall(llvm::InlineAsm::get(type, text, operands, false), {a, b});
  call->setDoesNotAccessMemory();
  call->setDoesNotThrow();
  return call;
}

// Two numbers at once, which takes a fraction of what the instruction for one number takes.
Value* GpuBody::round_to_half(DType to, Value* x, int count) {
  const char* text = to == DType::Float16 ? "cvt.rn.f16x2.f32 $0, $1, $2;" : "cvt.rn.bf16x2.f32 $0, $1, $2;";
  const auto pair = [&](Value* low, Value* high) {
    return instruction(text, "=r,f,f", b_.getInt32Ty(), high, low);
  };
  Value* zero = llvm::ConstantFP::get(b_.getFloatTy(), 0);
  if (count == 1) return b_.CreateTrunc(pair(x, zero), b_.getInt16Ty());
  Value* words = llvm::PoisonValue::get(llvm::FixedVectorType::get(b_.getInt32Ty(), (count + 1) / 2));
  for (uint64_t n = 0; n < static_cast<uint64_t>(count); n += 2)
    words = b_.CreateInsertElement(
        words, pair(b_.CreateExtractElement(x, n), b_.CreateExtractElement(x, n + 1)), n / 2);
  return b_.CreateBitCast(words, with_count(b_.getInt16Ty(), count));
}

// Both words of a product come from one instruction. Without a constant it is an ordinary product: no
// other part of it will be asked for.
Value* GpuBody::multiply_words(Value* a, Value* b, bool high) {
  if (!high && !llvm::isa<llvm::Constant>(a) && !llvm::isa<llvm::Constant>(b)) return b_.CreateMul(a, b);
  return each_lane(a, b, [&](Value* x, Value* y) {
    if (llvm::isa<llvm::Constant>(x)) std::swap(x, y);
    Value* both = instruction("mul.wide.u32 $0, $1, $2;", "=l,r,r", b_.getInt64Ty(), x, y);
    return b_.CreateTrunc(high ? b_.CreateLShr(both, 32) : both, b_.getInt32Ty());
  });
}

}  // namespace fl::codegen
