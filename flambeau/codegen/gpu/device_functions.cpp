#include "flambeau/codegen/gpu/device_functions.h"

#include <llvm/IR/InlineAsm.h>

#include "flambeau/base/error.h"
#include "flambeau/codegen/common/lane_ops.h"
#include "flambeau/codegen/gpu/compile.h"

namespace fl::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Function;
using llvm::Type;
using llvm::Value;

// A function of the module, new and with an entry block where the builder stands, or the one that is there.
Function* find_or_start(llvm::Module& module, llvm::IRBuilder<>& b, const std::string& name, Type* result,
                        const std::vector<Type*>& parameters) {
  if (Function* known = module.getFunction(name)) return known;
  auto* type = llvm::FunctionType::get(result, parameters, false);
  Function* f = Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
  f->addFnAttr(llvm::Attribute::NoInline);
  b.SetInsertPoint(BasicBlock::Create(module.getContext(), "entry", f));
  return f;
}

bool has_body(const llvm::IRBuilder<>& b) { return !b.GetInsertBlock(); }

// The bytes of one or two parts as one integer, and back.
Value* pack(llvm::IRBuilder<>& b, Value* re, Value* im) {
  const auto bits = [&](Value* v) {
    return b.CreateBitCast(v, b.getIntNTy(v->getType()->getPrimitiveSizeInBits()));
  };
  if (!im) return bits(re);
  const unsigned half = re->getType()->getPrimitiveSizeInBits();
  Type* wide = b.getIntNTy(2 * half);
  return b.CreateOr(b.CreateZExt(bits(re), wide), b.CreateShl(b.CreateZExt(bits(im), wide), half));
}
Lanes unpack(llvm::IRBuilder<>& b, Value* bits, Type* part, bool pair) {
  Lanes out;
  const unsigned width = part->getPrimitiveSizeInBits();
  Type* integer = b.getIntNTy(width);
  out.re = b.CreateBitCast(b.CreateTrunc(bits, integer), part);
  if (pair) out.im = b.CreateBitCast(b.CreateTrunc(b.CreateLShr(bits, width), integer), part);
  return out;
}

// The bits of mode(old, value), both as they are in memory.
Value* combined(LaneOps& ops, DType d, StoreMode mode, Value* old_bits, const Lanes& value) {
  auto& b = ops.builder();
  const bool pair = is_complex(d);
  Lanes old = unpack(b, old_bits, ops.memory_type(d), pair);
  if (d == DType::Bool) old.re = b.CreateICmpNE(old.re, b.getInt8(0));
  const DType wide = compute_dtype(d);
  const Val x = ops.cast(ops.add_lanes(d, old), wide), y = ops.cast(ops.add_lanes(d, value), wide);
  Val sum;
  switch (mode) {
    case StoreMode::Add:
      sum = ops.add(x, y);
      break;
    case StoreMode::Mul:
      sum = ops.mul(x, y);
      break;
    case StoreMode::Min:
      sum = ops.minimum(x, y);
      break;
    default:
      sum = ops.maximum(x, y);
  }
  Lanes out = ops.lanes(ops.cast(sum, d));
  if (d == DType::Bool) out.re = b.CreateZExt(out.re, b.getInt8Ty());
  return pack(b, out.re, out.im);
}

// Compare and swap until no one came between, on a word of 32 or 64 bits of which the element is a part.
void swap_until_done(LaneOps& ops, Function* f, DType d, StoreMode mode, const Lanes& value) {
  auto& b = ops.builder();
  auto& context = b.getContext();
  const auto bits = static_cast<unsigned>(8 * size_of(d));
  Value *word = f->getArg(0), *shift = nullptr;
  Type* type = b.getIntNTy(std::max(bits, 32u));
  if (bits < 32) {
    Value* address = b.CreatePtrToInt(word, b.getInt64Ty());
    word = b.CreateIntToPtr(b.CreateAnd(address, b.getInt64(~uint64_t{3})), word->getType());
    shift = b.CreateTrunc(b.CreateShl(b.CreateAnd(address, b.getInt64(3)), 3), type);
  }
  Value* first = b.CreateAlignedLoad(type, word, llvm::Align(type->getIntegerBitWidth() / 8), true);
  BasicBlock *entry = b.GetInsertBlock(), *again = BasicBlock::Create(context, "again", f),
             *done = BasicBlock::Create(context, "done", f);
  b.CreateBr(again);
  b.SetInsertPoint(again);
  llvm::PHINode* old = b.CreatePHI(type, 2);
  old->addIncoming(first, entry);
  Value* element = shift ? b.CreateTrunc(b.CreateLShr(old, shift), b.getIntNTy(bits)) : old;
  Value* changed = combined(ops, d, mode, element, value);
  if (shift) {
    Value* field = b.CreateShl(b.CreateZExt(llvm::Constant::getAllOnesValue(b.getIntNTy(bits)), type), shift);
    changed =
        b.CreateOr(b.CreateAnd(old, b.CreateNot(field)), b.CreateShl(b.CreateZExt(changed, type), shift));
  }
  Value* swap = b.CreateAtomicCmpXchg(word, old, changed, llvm::MaybeAlign(type->getIntegerBitWidth() / 8),
                                      llvm::AtomicOrdering::Monotonic, llvm::AtomicOrdering::Monotonic);
  old->addIncoming(b.CreateExtractValue(swap, 0), b.GetInsertBlock());
  b.CreateCondBr(b.CreateExtractValue(swap, 1), done, again);
  b.SetInsertPoint(done);
}

// The machine's own operation where it does the same.
bool combine_natively(llvm::IRBuilder<>& b, Function* f, DType d, StoreMode mode, const Lanes& value) {
  using Op = llvm::AtomicRMWInst;
  const auto run = [&](Op::BinOp op, Value* pointer, Value* v) {
    b.CreateAtomicRMW(op, pointer, v, llvm::MaybeAlign(v->getType()->getPrimitiveSizeInBits() / 8),
                      llvm::AtomicOrdering::Monotonic);
    return true;
  };
  if (mode == StoreMode::Add && is_complex(d)) {
    run(Op::FAdd, f->getArg(0), value.re);
    return run(Op::FAdd, b.CreateConstGEP1_64(value.im->getType(), f->getArg(0), 1), value.im);
  }
  if (mode == StoreMode::Add && (d == DType::Float32 || d == DType::Float64))
    return run(Op::FAdd, f->getArg(0), value.re);
  if (d != DType::Int32 && d != DType::Int64) return false;
  if (mode == StoreMode::Add) return run(Op::Add, f->getArg(0), value.re);
  if (mode == StoreMode::Min) return run(Op::Min, f->getArg(0), value.re);
  if (mode == StoreMode::Max) return run(Op::Max, f->getArg(0), value.re);
  return false;
}

}  // namespace

Function* integer_power(llvm::Module& module, DType d) {
  llvm::IRBuilder<> b(module.getContext());
  Type* type = b.getIntNTy(static_cast<unsigned>(8 * size_of(d)));
  Type* wide = b.getInt64Ty();
  Function* f = find_or_start(module, b, fmt::format("power_{}", info(d).short_name), type, {type, type});
  if (has_body(b)) return f;
  const bool is_signed = info(d).is_signed;
  Value* base = b.CreateIntCast(f->getArg(0), wide, is_signed);
  Value* exponent = b.CreateIntCast(f->getArg(1), wide, is_signed);
  auto& context = module.getContext();
  BasicBlock *entry = b.GetInsertBlock(), *test = BasicBlock::Create(context, "test", f),
             *step = BasicBlock::Create(context, "step", f), *done = BasicBlock::Create(context, "done", f);
  Value* start = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, exponent, b.getInt64(0));
  b.CreateBr(test);
  b.SetInsertPoint(test);
  llvm::PHINode *result = b.CreatePHI(wide, 2), *factor = b.CreatePHI(wide, 2), *left = b.CreatePHI(wide, 2);
  result->addIncoming(b.getInt64(1), entry);
  factor->addIncoming(base, entry);
  left->addIncoming(start, entry);
  b.CreateCondBr(b.CreateICmpNE(left, b.getInt64(0)), step, done);
  b.SetInsertPoint(step);
  Value* odd = b.CreateICmpNE(b.CreateAnd(left, 1), b.getInt64(0));
  result->addIncoming(b.CreateSelect(odd, b.CreateMul(result, factor), result), step);
  factor->addIncoming(b.CreateMul(factor, factor), step);
  left->addIncoming(b.CreateLShr(left, 1), step);
  b.CreateBr(test);
  b.SetInsertPoint(done);
  // Of a negative exponent: 1 of 1, 1 or -1 of -1, else 0.
  Value* parity = b.CreateSelect(b.CreateICmpNE(b.CreateAnd(exponent, 1), b.getInt64(0)),
                                 b.getInt64(static_cast<uint64_t>(-1)), b.getInt64(1));
  Value* inverse =
      b.CreateSelect(b.CreateICmpEQ(base, b.getInt64(static_cast<uint64_t>(-1))), parity, b.getInt64(0));
  inverse = b.CreateSelect(b.CreateICmpEQ(base, b.getInt64(1)), b.getInt64(1), inverse);
  Value* negative = b.CreateICmpSLT(exponent, b.getInt64(0));
  b.CreateRet(b.CreateTrunc(b.CreateSelect(negative, inverse, result), type));
  return f;
}

Function* atomic_combine(llvm::Module& module, const Machine& machine, DType d, StoreMode mode) {
  FL_CHECK(d != DType::Complex128 || mode == StoreMode::Add, NotImplementedError,
           "{} cannot be combined by threads at once on this GPU: ask for a deterministic kernel", name(d));
  static constexpr const char* kModes[] = {"set", "add", "mul", "min", "max"};
  llvm::IRBuilder<> b(module.getContext());
  LaneOps types(nullptr, b, machine);
  std::vector<Type*> parameters{b.getPtrTy(kGlobalMemory), types.register_type(d)};
  if (is_complex(d)) parameters.push_back(types.register_type(d));
  const std::string name = fmt::format("combine_{}_{}", kModes[static_cast<int>(mode)], info(d).short_name);
  Function* f = find_or_start(module, b, name, b.getVoidTy(), parameters);
  if (has_body(b)) return f;
  LaneOps ops(f, b, machine);
  const Lanes value{f->getArg(1), is_complex(d) ? f->getArg(2) : nullptr, 1, 0};
  if (!combine_natively(b, f, d, mode, value)) swap_until_done(ops, f, d, mode, value);
  b.CreateRetVoid();
  return f;
}

Function* record_failure(llvm::Module& module) {
  llvm::IRBuilder<> b(module.getContext());
  Type *pointer = b.getPtrTy(kGlobalMemory), *word = b.getInt32Ty(), *wide = b.getInt64Ty();
  Function* f = find_or_start(module, b, "record_failure", b.getVoidTy(), {pointer, wide, word, wide, wide});
  if (has_body(b)) return f;
  f->addFnAttr(llvm::Attribute::Cold);
  auto& context = module.getContext();
  BasicBlock *free = BasicBlock::Create(context, "free", f), *mine = BasicBlock::Create(context, "mine", f),
             *done = BasicBlock::Create(context, "done", f);
  Value* slot = f->getArg(0);
  const auto field = [&](size_t offset) {
    return b.CreateConstGEP1_64(b.getInt8Ty(), slot, static_cast<uint64_t>(offset));
  };
  // The memory is the host's: what other threads see of it is the system's matter, not this GPU's alone.
  Value* state = b.CreateAlignedLoad(word, slot, llvm::Align(4), true);
  b.CreateCondBr(b.CreateICmpEQ(state, b.getInt32(0)), free, done);
  b.SetInsertPoint(free);
  auto* swap_type = llvm::FunctionType::get(word, {pointer, word, word}, false);
  auto* swap = llvm::InlineAsm::get(swap_type, "atom.sys.global.cas.b32 $0, [$1], $2, $3;",
                                    "=r,l,r,r,~{memory}", true);
  Value* before = b.CreateCall(swap, {slot, b.getInt32(0), b.getInt32(1)});
  b.CreateCondBr(b.CreateICmpEQ(before, b.getInt32(0)), mine, done);
  b.SetInsertPoint(mine);
  const auto put = [&](size_t offset, Value* v) {
    b.CreateAlignedStore(v, field(offset), llvm::Align(v->getType()->getPrimitiveSizeInBits() / 8), true);
  };
  static_assert(sizeof(loop::ScalarBits) == 16);
  put(offsetof(GpuErrorSlot, check), f->getArg(2));
  put(offsetof(GpuErrorSlot, kernel), f->getArg(1));
  put(offsetof(GpuErrorSlot, value), f->getArg(3));
  put(offsetof(GpuErrorSlot, value) + 8, f->getArg(4));
  auto* fence = llvm::InlineAsm::get(llvm::FunctionType::get(b.getVoidTy(), false), "fence.acq_rel.sys;",
                                     "~{memory}", true);
  b.CreateCall(fence, {});
  put(offsetof(GpuErrorSlot, state), b.getInt32(2));
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return f;
}

}  // namespace fl::codegen
