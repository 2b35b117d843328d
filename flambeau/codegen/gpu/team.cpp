#include "flambeau/codegen/gpu/team.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>

#include "flambeau/codegen/gpu/device_functions.h"

namespace fl::codegen {

using llvm::Type;
using llvm::Value;
using loop::State;

namespace {
constexpr int kWarp = 32;
}

Value* read_register(llvm::IRBuilder<>& b, GridRegister r) {
  static constexpr llvm::Intrinsic::ID kIds[] = {
      llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x,
      llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x};
  return b.CreateZExt(b.CreateIntrinsic(kIds[static_cast<int>(r)], {}, {}), b.getInt64Ty());
}

Team::Team(BodyEmitter& body, const GridPlan& plan, int threads, llvm::Module& module)
    : body_(body), b_(body.builder()), plan_(plan), size_(threads), module_(module) {
  thread_ = read_register(b_, GridRegister::Thread);
  const auto size = static_cast<uint64_t>(threads);
  if (plan.kind == GridPlan::Kind::Columns) {
    across_ = b_.getInt64(static_cast<uint64_t>(plan.across));
    number_ = b_.CreateURem(thread_, across_);
    rank_ = b_.CreateUDiv(thread_, across_);
  } else {
    number_ = b_.CreateUDiv(thread_, b_.getInt64(size));
    rank_ = b_.CreateAnd(thread_, b_.getInt64(size - 1));
  }
  if (size > 1) is_first_ = b_.CreateICmpEQ(rank_, b_.getInt64(0));
  if (plan.kind == GridPlan::Kind::Columns || size == 1) return;
  lane_ = b_.CreateAnd(b_.CreateTrunc(thread_, b_.getInt32Ty()), b_.getInt32(kWarp - 1));
  members_ = b_.getInt32(~0u);
  if (size_ < kWarp)
    members_ = b_.CreateShl(b_.getInt32((1u << size_) - 1),
                            b_.CreateAnd(lane_, b_.getInt32(~static_cast<uint32_t>(size_ - 1))));
}

void Team::barrier() {
  if (size_ == 1) return;
  if (is_warp())
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {}, {members_});
  else
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
}

// One scalar of another thread of the warp: of the lane, or where that is null of the one whose number
// differs in the bit `offset`.
Value* Team::shuffle(Value* v, Value* lane, int offset) {
  Type* type = v->getType();
  const unsigned bits = type->getPrimitiveSizeInBits();
  if (bits == 64) {
    Value* both = b_.CreateBitCast(v, b_.getInt64Ty());
    Value* low = shuffle(b_.CreateTrunc(both, b_.getInt32Ty()), lane, offset);
    Value* high = shuffle(b_.CreateTrunc(b_.CreateLShr(both, 32), b_.getInt32Ty()), lane, offset);
    both = b_.CreateOr(b_.CreateZExt(low, b_.getInt64Ty()),
                       b_.CreateShl(b_.CreateZExt(high, b_.getInt64Ty()), 32));
    return b_.CreateBitCast(both, type);
  }
  if (bits < 32) return b_.CreateTrunc(shuffle(b_.CreateZExt(v, b_.getInt32Ty()), lane, offset), type);
  Value* word = b_.CreateBitCast(v, b_.getInt32Ty());
  Value* last = b_.getInt32(kWarp - 1);
  word = lane ? b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {}, {members_, word, lane, last})
              : b_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
                                   {members_, word, b_.getInt32(static_cast<uint32_t>(offset)), last});
  return b_.CreateBitCast(word, type);
}

// f on every scalar of a state.
template <class F>
State Team::each_element(const State& s, F&& f) {
  State out;
  for (Val v : s) {
    Lanes l = body_.lanes(v);
    const auto map = [&](Value* x) -> Value* {
      if (l.count == 1) return f(x);
      Value* all = llvm::PoisonValue::get(x->getType());
      for (uint64_t n = 0; n < static_cast<uint64_t>(l.count); ++n)
        all = b_.CreateInsertElement(all, f(b_.CreateExtractElement(x, n)), n);
      return all;
    };
    l.re = map(l.re);
    if (l.im) l.im = map(l.im);
    l.level = body_.level();
    out.push_back(body_.add_lanes(v.dtype, l));
  }
  return out;
}

State Team::from_partner(const State& mine, int offset) {
  return each_element(mine, [&](Value* x) { return shuffle(x, nullptr, offset); });
}

// One condition for all lanes.
State Team::choose(Value* condition, const State& a, const State& b) {
  State out;
  for (size_t c = 0; c < a.size(); ++c) {
    const Lanes x = body_.lanes(a[c]), y = body_.lanes(b[c]);
    Lanes l = x;
    l.level = body_.level();
    l.re = b_.CreateSelect(condition, x.re, y.re);
    if (x.im) l.im = b_.CreateSelect(condition, x.im, y.im);
    out.push_back(body_.add_lanes(a[c].dtype, l));
  }
  return out;
}

// Each thread of a pair merges the same two states in the same order. While there are several lanes, each of
// the two takes half of them: those halves meet at the end.
State Team::butterfly(State mine, int from, const Merge& merge, bool commutes) {
  const auto is_second = [&](int n) {
    return b_.CreateICmpNE(b_.CreateAnd(lane_, b_.getInt32(static_cast<uint32_t>(n))), b_.getInt32(0));
  };
  const auto meet = [&](Value* second, const State& own, const State& other) {
    if (commutes) return merge(own, other);
    return merge(choose(second, other, own), choose(second, own, other));
  };
  int lanes = 1;
  for (Val v : mine) lanes = std::max(lanes, body_.lanes(v).count);
  std::vector<int> halved;
  for (int n = from; n > 0; n /= 2) {
    Value* second = is_second(n);
    if (lanes == 1) {
      mine = meet(second, mine, from_partner(mine, n));
      continue;
    }
    lanes /= 2;
    const State low = lanes_of(body_, mine, 0, lanes), high = lanes_of(body_, mine, lanes, lanes);
    const State kept = choose(second, high, low), given = choose(second, low, high);
    mine = meet(second, kept, from_partner(given, n));
    halved.push_back(n);
  }
  for (int n : halved) mine = meet(is_second(n), mine, from_partner(mine, n));
  return merge_lanes(body_, mine, merge);
}

// The address of an element at a position of one component's part of the shared memory.
Value* Team::slot(Type* type, uint64_t& offset, Value* position, uint64_t positions) {
  const uint64_t bytes = module_.getDataLayout().getTypeAllocSize(type);
  offset = (offset + bytes - 1) / bytes * bytes;
  if (!shared_)
    shared_ = new llvm::GlobalVariable(module_, llvm::ArrayType::get(b_.getInt8Ty(), 0), false,
                                       llvm::GlobalValue::InternalLinkage, nullptr, "states", nullptr,
                                       llvm::GlobalValue::NotThreadLocal, kSharedMemory);
  Value* start = b_.CreateConstGEP1_64(b_.getInt8Ty(), shared_, offset);
  offset += bytes * positions;
  shared_bytes_ = std::max(shared_bytes_, offset);
  return b_.CreateGEP(type, start, position);
}

// f(dtype, value, address) for each part of each component at a thread's position.
template <class F>
void Team::each_slot(const State& model, Value* position, F&& f) {
  uint64_t offset = 0;
  const auto positions = static_cast<uint64_t>(plan_.block);
  for (size_t c = 0; c < model.size(); ++c) {
    const Lanes& l = body_.lanes(model[c]);
    Type* type = LaneOps::with_count(body_.memory_type(model[c].dtype), l.count);
    const bool pair = l.im != nullptr;
    Value* re = slot(type, offset, position, positions);
    f(c, type, re, pair ? slot(type, offset, position, positions) : nullptr);
  }
}

void Team::put(const State& s, Value* position) {
  each_slot(s, position, [&](size_t c, Type*, Value* re, Value* im) {
    const Lanes l = body_.lanes(s[c]);
    b_.CreateStore(body_.to_memory(s[c].dtype, l.re), re);
    if (im) b_.CreateStore(l.im, im);
  });
}

State Team::get(const State& model, Value* position) {
  State out;
  each_slot(model, position, [&](size_t c, Type* type, Value* re, Value* im) {
    Lanes l;
    l.count = body_.lanes(model[c]).count;
    l.level = body_.level();
    l.re = body_.from_memory(model[c].dtype, b_.CreateLoad(type, re));
    if (im) l.im = b_.CreateLoad(type, im);
    out.push_back(body_.add_lanes(model[c].dtype, l));
  });
  return out;
}

// First across the warps, in memory, where every thread puts together what its lane of each warp has; then in
// the warp.
State Team::reduce_warps(const State& mine, const Merge& merge, bool commutes) {
  barrier();
  put(mine, thread_);
  barrier();
  Value* lane = b_.CreateZExt(lane_, b_.getInt64Ty());
  const int warps = size_ / kWarp;
  // The tree of halves from its root, so that few states are in registers at once.
  const std::function<State(int, int)> tree = [&](int first, int step) {
    if (step == warps)
      return get(mine, b_.CreateAdd(lane, b_.getInt64(static_cast<uint64_t>(first * kWarp))));
    const State low = tree(first, 2 * step);
    return merge(low, tree(first + step, 2 * step));
  };
  return butterfly(tree(0, 1), kWarp / 2, merge, commutes);
}

// Half of the threads at a time, in memory.
State Team::reduce_columns(const State& mine, const Merge& merge) {
  auto& context = b_.getContext();
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  barrier();
  put(mine, thread_);
  for (int n = size_ / 2; n > 0; n /= 2) {
    barrier();
    auto *then = llvm::BasicBlock::Create(context, "half", function),
         *after = llvm::BasicBlock::Create(context, "after", function);
    Value* distance = b_.CreateMul(across_, b_.getInt64(static_cast<uint64_t>(n)));
    b_.CreateCondBr(b_.CreateICmpULT(rank_, b_.getInt64(static_cast<uint64_t>(n))), then, after);
    body_.open_level(b_.GetInsertBlock());
    b_.SetInsertPoint(then);
    const State low = get(mine, thread_), high = get(mine, b_.CreateAdd(thread_, distance));
    put(merge(low, high), thread_);
    b_.CreateBr(after);
    body_.close_level_of_body();
    b_.SetInsertPoint(after);
  }
  barrier();
  return get(mine, number_);
}

State Team::reduce(const State& mine, const Merge& merge, bool commutes) {
  if (size_ == 1) return mine;
  if (plan_.kind == GridPlan::Kind::Columns) return reduce_columns(mine, merge);
  return is_warp() ? butterfly(mine, size_ / 2, merge, commutes) : reduce_warps(mine, merge, commutes);
}

State Team::broadcast(const State& mine) {
  if (size_ == 1) return mine;
  if (is_warp()) {
    Value* first = b_.CreateAnd(lane_, b_.getInt32(~static_cast<uint32_t>(size_ - 1)));
    return each_element(mine, [&](Value* x) { return shuffle(x, first, 0); });
  }
  auto& context = b_.getContext();
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto *then = llvm::BasicBlock::Create(context, "first", function),
       *after = llvm::BasicBlock::Create(context, "after", function);
  barrier();
  b_.CreateCondBr(is_first_, then, after);
  b_.SetInsertPoint(then);
  put(mine, thread_);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  barrier();
  return get(mine, plan_.kind == GridPlan::Kind::Columns ? number_ : b_.getInt64(0));
}

void Team::finish() {
  if (!shared_) return;
  auto* type = llvm::ArrayType::get(b_.getInt8Ty(), shared_bytes_);
  auto* sized = new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::InternalLinkage,
                                         llvm::UndefValue::get(type), "shared", nullptr,
                                         llvm::GlobalValue::NotThreadLocal, kSharedMemory);
  sized->setAlignment(llvm::Align(16));
  shared_->replaceAllUsesWith(sized);
  shared_->eraseFromParent();
  shared_ = nullptr;
}

}  // namespace fl::codegen
