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

namespace {
// Dividends and divisors between which no step of the division by a reciprocal loses a bit; see below.
constexpr double kLeastDividend = 0x1p-60, kMostDividend = 0x1p60;
constexpr double kLeastDivisor = 0x1p-30, kMostDivisor = 0x1p30;
}  // namespace

// With r = 1/b rounded, q = a r and the exact rest e = a - q b, q + e r rounded once is a/b rounded
// (Markstein, 1990): three operations in the place of twenty, where nothing under- or overflows on the way.
Value* GpuBody::divide_by_uniform(DType d, const Lanes& a, const Lanes& b) {
  if (d != DType::Float32) return nullptr;
  const auto magnitude = [&](Value* v) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  const auto literal = [&](double v) { return llvm::ConstantFP::get(b_.getFloatTy(), v); };
  Value *reciprocal, *safe;
  {
    Place place(*this, b.level);
    reciprocal = b_.CreateFDiv(literal(1), b.re);
    safe = b_.CreateAnd(b_.CreateFCmpOGE(magnitude(b.re), literal(kLeastDivisor)),
                        b_.CreateFCmpOLE(magnitude(b.re), literal(kMostDivisor)));
  }
  const auto lane = [&](Value* v, int n) {
    return a.count > 1 ? b_.CreateExtractElement(v, static_cast<uint64_t>(n)) : v;
  };
  for (int n = 0; n < a.count; ++n) {
    Value* x = lane(a.re, n);
    Value* large =
        b_.CreateOr(b_.CreateFCmpOGE(magnitude(x), literal(kLeastDividend)), b_.CreateFCmpOEQ(x, literal(0)));
    safe = b_.CreateAnd(safe, b_.CreateAnd(large, b_.CreateFCmpOLE(magnitude(x), literal(kMostDividend))));
  }
  auto& context = b_.getContext();
  auto *fast = llvm::BasicBlock::Create(context, "by_reciprocal", function_),
       *slow = llvm::BasicBlock::Create(context, "divided", function_),
       *after = llvm::BasicBlock::Create(context, "quotient", function_);
  b_.CreateCondBr(safe, fast, slow);
  const auto each = [&](auto&& f) {
    Value* out = a.count > 1 ? llvm::PoisonValue::get(a.re->getType()) : nullptr;
    for (int n = 0; n < a.count; ++n) {
      Value* v = f(lane(a.re, n));
      out = a.count > 1 ? b_.CreateInsertElement(out, v, static_cast<uint64_t>(n)) : v;
    }
    b_.CreateBr(after);
    return out;
  };
  const auto fma = [&](Value* x, Value* y, Value* z) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
  };
  b_.SetInsertPoint(fast);
  Value* quick = each([&](Value* x) {
    Value* quotient = b_.CreateFMul(x, reciprocal);
    // The sign of a zero is that of the quotient.
    Value* rest = fma(b_.CreateFNeg(quotient), b.re, x);
    return b_.CreateSelect(b_.CreateFCmpOEQ(x, literal(0)), quotient, fma(rest, reciprocal, quotient));
  });
  b_.SetInsertPoint(slow);
  Value* exact = each([&](Value* x) { return b_.CreateFDiv(x, b.re); });
  b_.SetInsertPoint(after);
  llvm::PHINode* out = b_.CreatePHI(a.re->getType(), 2);
  out->addIncoming(quick, fast);
  out->addIncoming(exact, slow);
  return out;
}

}  // namespace fl::codegen
