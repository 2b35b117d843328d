#include "flambeau/codegen/gpu/gpu_body.h"

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

Value* GpuBody::call_library(ScalarOp op, DType d, Value* a, Value* b, int count) {
  FL_CHECK(op == ScalarOp::Pow && is_integral(d), NotImplementedError, "{} of {} has no GPU code", name(op),
           name(d));
  llvm::Function* f = integer_power(*function_->getParent(), d);
  if (count == 1) return b_.CreateCall(f, {a, b});
  Value* out = llvm::PoisonValue::get(a->getType());
  for (int n = 0; n < count; ++n) {
    const auto lane = static_cast<uint64_t>(n);
    Value* one = b_.CreateCall(f, {b_.CreateExtractElement(a, lane), b_.CreateExtractElement(b, lane)});
    out = b_.CreateInsertElement(out, one, lane);
  }
  return out;
}

}  // namespace fl::codegen
