#include "flambeau/codegen/common/body_emitter.h"

#include <algorithm>

#include "flambeau/base/error.h"
#include "flambeau/loop/constant.h"

namespace fl::codegen {

using llvm::Type;
using llvm::Value;
using loop::Inst;
using loop::InstKind;
using sym::Expr;

BodyEmitter::BodyEmitter(const loop::Kernel& k, llvm::Function* function, llvm::IRBuilder<>& builder,
                         const Machine& machine)
    : LaneOps(function, builder, machine), k_(k) {
  for (const loop::Buffer& b : k.buffers) written_.push_back(b.written);
  set_part(0);
}

void BodyEmitter::clear_values() {
  values_.clear();
  set_part(0);
}

void BodyEmitter::set_variable(const Expr& variable, Value* value) {
  variables_.push_back({variable, value, level()});
}

void BodyEmitter::set_axis(const Expr& variable, Value* base, int count, Value* mask, int level) {
  axis_ = {variable, base, mask, count, level};
}

void BodyEmitter::set_part(int part) {
  part_ = part;
  if (static_cast<size_t>(part) >= values_.size())
    values_.resize(part + 1, std::vector<Val>(k_.insts.size()));
}

void BodyEmitter::close_level_of_body() {
  close_level();
  std::erase_if(variables_, [&](const Variable& v) { return v.level > level(); });
  std::erase_if(pointers_, [&](const PointerMemo& p) { return p.level > level(); });
  for (auto& [node, memos] : exprs_)
    std::erase_if(memos, [&](const Memo& m) { return m.lanes.level > level(); });
}

Lanes BodyEmitter::symbol(const Expr& s) {
  if (const int32_t id = loop::value_of(s); id >= 0) return lanes(value(id));
  Lanes out;
  if (axis_.base && s == axis_.variable) {
    out.count = axis_.count;
    out.level = axis_.level;
    out.re = axis_.base;
    Place place(*this, axis_.level);
    if (axis_.count > 1) out.re = b_.CreateAdd(widened(axis_.base, axis_.level, axis_.count), lane_numbers());
    return out;
  }
  if (part_variable_.value && s == part_variable_.symbol) {
    out.re = part_variable_.value;
    out.level = part_variable_.level;
    return out;
  }
  for (size_t n = variables_.size(); n-- > 0;)
    if (variables_[n].symbol == s) {
      out.re = variables_[n].value;
      out.level = variables_[n].level;
      return out;
    }
  for (size_t n = 0; n < k_.sizes.size(); ++n)
    if (k_.sizes[n] == s) {
      out.re = arguments_.sizes[n];
      return out;
    }
  FL_RAISE(InternalError, "kernel {}: no value for the symbol {}", k_.name, s.str());
}

Val BodyEmitter::value(int32_t id) const {
  const Val v = values_[part_][id];
  return v.id >= 0 ? v : values_[0][id];
}

Value* BodyEmitter::lane_numbers() {
  std::vector<llvm::Constant*> numbers;
  for (int n = 0; n < axis_.count; ++n) numbers.push_back(b_.getInt64(n));
  return llvm::ConstantVector::get(numbers);
}

Value* BodyEmitter::scalar(const Expr& e) {
  const Lanes l = expr(e);
  FL_ASSERT(l.count == 1, "{} differs from lane to lane", e.str());
  return l.re;
}

Lanes BodyEmitter::expr(const Expr& e) {
  if (e.is_const()) {
    Lanes out;
    out.re = b_.getInt64(e.value());
    return out;
  }
  if (e.is_symbol() && loop::value_of(e) >= 0) return symbol(e);
  std::vector<Memo>& memos = exprs_[e.node()];
  for (const Memo& m : memos)
    if (m.part < 0 || m.part == part_) return m.lanes;
  const Lanes out = e.is_symbol() ? symbol(e) : compute(e);
  // The axis is set anew for each step, and a value's name may be reused: only what is uniform stays.
  if (!((axis_.base || part_variable_.value) && varies(e))) exprs_[e.node()].push_back({-1, out});
  return out;
}

// Whether e may differ between the lanes, or between the parts of a step.
bool BodyEmitter::varies(const Expr& e) const {
  for (const Expr& s : sym::symbols_of(e)) {
    if (axis_.base && s == axis_.variable) return true;
    if (part_variable_.value && s == part_variable_.symbol) return true;
    const int32_t id = loop::value_of(s);
    if (id >= 0) return true;
  }
  return false;
}

Lanes BodyEmitter::compute(const Expr& e) {
  std::vector<Lanes> args;
  for (const Expr& a : e.args()) args.push_back(expr(a));
  const bool commutes = e.kind() == sym::Kind::Add || e.kind() == sym::Kind::Mul;
  if (commutes)  // what changes least comes first, so that partial results stay outside of inner loops
    std::stable_sort(args.begin(), args.end(), [](const Lanes& a, const Lanes& b) {
      return std::pair(a.count, a.level) < std::pair(b.count, b.level);
    });
  const bool is_division = e.kind() == sym::Kind::FloorDiv || e.kind() == sym::Kind::Mod;
  const bool nonnegative = is_division && sym::known_nonnegative(e.args()[0]);
  Lanes out = args[0];
  for (size_t n = 1; n < args.size(); ++n) out = combine(e.kind(), out, args[n], nonnegative);
  return out;
}

Lanes BodyEmitter::combine(sym::Kind kind, const Lanes& a, const Lanes& b, bool nonnegative) {
  Lanes out;
  out.count = std::max(a.count, b.count);
  out.level = std::max(a.level, b.level);
  Value* x = a.count == out.count ? a.re : widened(a.re, a.level, out.count);
  Value* y = b.count == out.count ? b.re : widened(b.re, b.level, out.count);
  Place place(*this, out.level);
  const auto literal = [&](int64_t v) {
    return llvm::ConstantInt::get(x->getType(), static_cast<uint64_t>(v), true);
  };
  switch (kind) {
    case sym::Kind::Add:
      out.re = b_.CreateAdd(x, y);
      return out;
    case sym::Kind::Mul:
      out.re = b_.CreateMul(x, y);
      return out;
    case sym::Kind::Min:
      out.re = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
      return out;
    case sym::Kind::Max:
      out.re = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y);
      return out;
    default:
      break;
  }
  // A size of zero divides only where nothing runs; the machine must not trap all the same.
  if (!llvm::isa<llvm::Constant>(y)) y = b_.CreateSelect(b_.CreateICmpEQ(y, literal(0)), literal(1), y);
  if (nonnegative) {
    out.re = kind == sym::Kind::FloorDiv ? b_.CreateUDiv(x, y) : b_.CreateURem(x, y);
    return out;
  }
  Value *quotient = b_.CreateSDiv(x, y), *rest = b_.CreateSub(x, b_.CreateMul(quotient, y));
  Value* adjust =
      b_.CreateAnd(b_.CreateICmpNE(rest, literal(0)), b_.CreateICmpSLT(b_.CreateXor(rest, y), literal(0)));
  out.re = kind == sym::Kind::FloorDiv ? b_.CreateSelect(adjust, b_.CreateSub(quotient, literal(1)), quotient)
                                       : b_.CreateSelect(adjust, b_.CreateAdd(rest, y), rest);
  return out;
}

BodyEmitter::Access BodyEmitter::classify(int32_t buffer, const Expr& index) {
  using Kind = Access::Kind;
  Access out{Kind::Uniform, Expr(0), index};
  bool has_vector_value = false;
  for (const Expr& s : sym::symbols_of(index)) {
    const int32_t id = loop::value_of(s);
    has_vector_value = has_vector_value || (id >= 0 && lanes(value(id)).count > 1);
  }
  if (has_vector_value) {
    out.kind = Kind::Indexed;
    return out;
  }
  if (!axis_.base || axis_.count == 1 || !sym::depends_on(index, axis_.variable)) return out;
  auto affine = sym::affine_in(index, axis_.variable);
  if (!affine) {
    out.kind = Kind::Indexed;
    return out;
  }
  out.coefficient = affine->first;
  out.rest = affine->second;
  out.kind = out.coefficient.is_const(1) ? Kind::Contiguous : Kind::Strided;
  out.aligned = out.kind == Kind::Contiguous && is_aligned_ && is_aligned_(buffer, index);
  return out;
}

Type* BodyEmitter::element_type(DType d) const {
  return is_complex(d) ? static_cast<Type*>(llvm::ArrayType::get(memory_type(d), 2)) : memory_type(d);
}

Value* BodyEmitter::element_pointer(int32_t buffer, const Expr& rest) {
  for (const PointerMemo& p : pointers_)
    if (p.buffer == buffer && p.rest == rest) return p.pointer;
  const Lanes offset = expr(rest);
  Place place(*this, offset.level);
  Value* out = b_.CreateGEP(element_type(k_.buffers[buffer].dtype), arguments_.buffers[buffer], offset.re);
  if (!varies(rest)) pointers_.push_back({buffer, rest, out, offset.level});
  return out;
}

// The address (or the vector of addresses) of the lanes' elements; the insertion point is right for them.
Value* BodyEmitter::pointers(int32_t buffer, const Expr& index, const Access& access) {
  Type* type = element_type(k_.buffers[buffer].dtype);
  switch (access.kind) {
    case Access::Kind::Uniform:
      return element_pointer(buffer, index);
    case Access::Kind::Contiguous:
      return b_.CreateGEP(type, element_pointer(buffer, access.rest), axis_.base);
    case Access::Kind::Strided: {
      const Lanes c = expr(access.coefficient);
      Value* first = b_.CreateGEP(type, element_pointer(buffer, access.rest), b_.CreateMul(axis_.base, c.re));
      Value* offsets;
      {
        Place place(*this, c.level);
        offsets = b_.CreateMul(widened(c.re, c.level, axis_.count), lane_numbers());
      }
      return b_.CreateGEP(type, first, offsets);
    }
    default:
      return b_.CreateGEP(type, arguments_.buffers[buffer], expr(index).re);
  }
}

Value* BodyEmitter::both(Value* a, Value* b) {
  if (!a) return b;
  return b ? b_.CreateAnd(a, b) : a;
}

Value* BodyEmitter::from_memory(DType d, Value* v) {
  return d == DType::Bool ? b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType())) : v;
}

Value* BodyEmitter::to_memory(DType d, Value* v) {
  return d == DType::Bool ? b_.CreateZExt(v, v->getType()->getWithNewType(b_.getInt8Ty())) : v;
}

Value* BodyEmitter::or_zeros(Value* wanted, Value* pointer) {
  if (!zeros_) {
    auto* type = llvm::ArrayType::get(b_.getInt64Ty(), kZeroBytes / 8);
    auto* zeros = new llvm::GlobalVariable(
        *function_->getParent(), type, true, llvm::GlobalValue::PrivateLinkage,
        llvm::Constant::getNullValue(type), "zeros", nullptr, llvm::GlobalValue::NotThreadLocal,
        pointer->getType()->getPointerAddressSpace());
    zeros->setAlignment(llvm::Align(16));
    zeros_ = zeros;
  }
  return b_.CreateSelect(wanted, pointer, zeros_);
}

Lanes BodyEmitter::load_scalar(DType d, Value* pointer, Value* mask) {
  if (mask) pointer = or_zeros(mask, pointer);
  Lanes out;
  Type* type = memory_type(d);
  const llvm::Align align(type->getPrimitiveSizeInBits() / 8);
  out.re = from_memory(d, b_.CreateAlignedLoad(type, pointer, align));
  if (is_complex(d)) out.im = b_.CreateAlignedLoad(type, b_.CreateConstGEP1_64(type, pointer, 1), align);
  return out;
}

namespace {
// 0 0 1 1 2 2 ...: a lane's number for each half of a complex number.
std::vector<int> doubled(int count) {
  std::vector<int> out;
  for (int n = 0; n < 2 * count; ++n) out.push_back(n / 2);
  return out;
}
std::vector<int> every_second(int count, int first) {
  std::vector<int> out;
  for (int n = 0; n < count; ++n) out.push_back(2 * n + first);
  return out;
}
std::vector<int> interleaved(int count) {
  std::vector<int> out;
  for (int n = 0; n < 2 * count; ++n) out.push_back(n / 2 + (n % 2 ? count : 0));
  return out;
}
}  // namespace

// Of a whole vector.
llvm::Align BodyEmitter::alignment(DType d, const Access& access) const {
  const auto element = static_cast<uint64_t>(size_of(d));
  if (!access.aligned) return llvm::Align(static_cast<uint64_t>(size_of(real_dtype(d))));
  return llvm::Align(std::min<uint64_t>(16, element * static_cast<uint64_t>(axis_.count)));
}

// Whether lanes go to and from memory together.
bool BodyEmitter::moves_vectors(const Access& access, Value* mask) const {
  return machine_.has_vector_memory || (access.aligned && !mask);
}

Value* BodyEmitter::lane_pointer(DType d, const Access& access, Value* addresses, int lane) {
  if (access.kind == Access::Kind::Contiguous)
    return b_.CreateConstGEP1_64(element_type(d), addresses, static_cast<uint64_t>(lane));
  return b_.CreateExtractElement(addresses, static_cast<uint64_t>(lane));
}

Lanes BodyEmitter::lane_of(const Lanes& v, int lane) {
  Lanes out;
  out.level = v.level;
  out.re = b_.CreateExtractElement(v.re, static_cast<uint64_t>(lane));
  if (v.im) out.im = b_.CreateExtractElement(v.im, static_cast<uint64_t>(lane));
  return out;
}

Lanes BodyEmitter::load_one_by_one(DType d, const Access& access, Value* addresses, Value* mask) {
  Lanes out;
  out.count = axis_.count;
  const auto insert = [&](Value*& into, Value* element, int lane) {
    if (!into) into = llvm::PoisonValue::get(with_count(element->getType(), out.count));
    into = b_.CreateInsertElement(into, element, static_cast<uint64_t>(lane));
  };
  for (int n = 0; n < out.count; ++n) {
    Value* wanted = mask ? b_.CreateExtractElement(mask, static_cast<uint64_t>(n)) : nullptr;
    const Lanes one = load_scalar(d, lane_pointer(d, access, addresses, n), wanted);
    insert(out.re, one.re, n);
    if (one.im) insert(out.im, one.im, n);
  }
  return out;
}

Lanes BodyEmitter::load_contiguous(DType d, Value* pointer, Value* mask, llvm::Align align) {
  Lanes out;
  out.count = axis_.count;
  const bool pair = is_complex(d);
  Type* type = with_count(memory_type(d), pair ? 2 * out.count : out.count);
  if (pair && mask) mask = b_.CreateShuffleVector(mask, doubled(out.count));
  Value* all = mask ? b_.CreateMaskedLoad(type, pointer, align, mask, llvm::Constant::getNullValue(type))
                    : static_cast<Value*>(b_.CreateAlignedLoad(type, pointer, align));
  if (!pair) {
    out.re = from_memory(d, all);
    return out;
  }
  out.re = b_.CreateShuffleVector(all, every_second(out.count, 0));
  out.im = b_.CreateShuffleVector(all, every_second(out.count, 1));
  return out;
}

Lanes BodyEmitter::gather(DType d, Value* addresses, Value* mask) {
  Lanes out;
  out.count = axis_.count;
  Type* type = with_count(memory_type(d), out.count);
  const llvm::Align align(memory_type(d)->getPrimitiveSizeInBits() / 8);
  const auto get = [&](Value* at) {
    return b_.CreateMaskedGather(type, at, align, mask, llvm::Constant::getNullValue(type));
  };
  if (!mask) mask = llvm::Constant::getAllOnesValue(with_count(b_.getInt1Ty(), out.count));
  out.re = from_memory(d, get(addresses));
  if (is_complex(d)) out.im = get(b_.CreateGEP(memory_type(d), addresses, b_.getInt64(1)));
  return out;
}

Lanes BodyEmitter::read(DType d, const Access& access, Value* pointer, Value* mask) {
  if (access.kind == Access::Kind::Uniform) return load_scalar(d, pointer, mask);
  if (!moves_vectors(access, mask)) return load_one_by_one(d, access, pointer, mask);
  switch (access.kind) {
    case Access::Kind::Contiguous:
      return load_contiguous(d, pointer, mask, alignment(d, access));
    default:
      return gather(d, pointer, mask);
  }
}

// A buffer's one element that came with the launch.
Lanes BodyEmitter::given_value(const Inst& i) {
  Lanes out = arguments_.values[i.slot];
  if (i.a < 0) return out;
  const Lanes condition = lanes(value(i.a));
  const Lanes wide = widened(add_lanes(i.dtype, out), condition.count);
  out.count = condition.count;
  out.level = condition.level;
  Place place(*this, out.level);
  out.re = b_.CreateSelect(condition.re, wide.re, llvm::Constant::getNullValue(wide.re->getType()));
  if (wide.im)
    out.im = b_.CreateSelect(condition.re, wide.im, llvm::Constant::getNullValue(wide.im->getType()));
  return out;
}

Lanes BodyEmitter::load(const Inst& i) {
  if (static_cast<size_t>(i.slot) < arguments_.values.size() && arguments_.values[i.slot].re)
    return given_value(i);
  Access access = classify(i.slot, i.index);
  int at = load_floor_;
  Lanes condition;
  if (i.a >= 0) {
    condition = lanes(value(i.a));
    at = std::max(at, condition.level);
  }
  for (const Expr& s : sym::symbols_of(i.index)) at = std::max(at, symbol(s).level);
  if (access.kind != Access::Kind::Uniform) at = std::max(at, axis_.level);
  if (written_[i.slot]) at = level();
  at = std::min(at, level());
  Place place(*this, at);
  Lanes out;
  if (access.kind == Access::Kind::Uniform && condition.re && condition.count > 1) {
    // One element, for the lanes that want it.
    Value* any = any_lane(both(condition.re, axis_.mask));
    Lanes one = load_scalar(i.dtype, pointers(i.slot, i.index, access), any);
    one.level = at;
    out = widened(add_lanes(i.dtype, one), condition.count);
    out.re = b_.CreateSelect(condition.re, out.re, llvm::Constant::getNullValue(out.re->getType()));
    if (out.im)
      out.im = b_.CreateSelect(condition.re, out.im, llvm::Constant::getNullValue(out.im->getType()));
  } else if (condition.re && condition.count == 1 && !axis_.mask && access.kind == Access::Kind::Contiguous &&
             moves_vectors(access, nullptr) && size_of(i.dtype) * axis_.count <= kZeroBytes) {
    // All lanes or none.
    Value* from = or_zeros(condition.re, pointers(i.slot, i.index, access));
    out = load_contiguous(i.dtype, from, nullptr, alignment(i.dtype, access));
  } else {
    Value* mask = nullptr;
    if (access.kind == Access::Kind::Uniform) {
      mask = condition.re;
    } else {
      if (condition.re)
        mask = condition.count == axis_.count ? condition.re
                                              : widened(condition.re, condition.level, axis_.count);
      mask = both(mask, axis_.mask);
    }
    out = read(i.dtype, access, pointers(i.slot, i.index, access), mask);
  }
  out.level = at;
  return out;
}

void BodyEmitter::inst(int32_t id) {
  const Inst& i = k_.insts[id];
  if (part_ > 0) {
    const Val first = values_[0][id];
    const bool uniform = first.id >= 0 && lanes(first).count == 1;
    if (uniform && lane_count() > 1 && !part_variable_.value) return set_value(id, first);
  }
  const auto operand = [&](int32_t n) { return n >= 0 ? value(n) : Val{}; };
  switch (i.kind) {
    case InstKind::Operation:
      return set_value(id, emit(i.op, i.dtype, operand(i.a), operand(i.b), operand(i.c)));
    case InstKind::Constant:
      return set_value(
          id, constant(i.dtype, is_integral(i.dtype, true) ? Literal(i.integer) : Literal(i.number)));
    case InstKind::Index:
      return set_value(id, add_lanes(DType::Int64, expr(i.index)));
    case InstKind::Load:
      return set_value(id, add_lanes(i.dtype, load(i)));
    case InstKind::Param:
      return set_value(id, add_lanes(i.dtype, arguments_.params[i.slot]));
    default:
      FL_RAISE(InternalError, "%{} is no instruction of a body", id);
  }
}

Val BodyEmitter::updated(const loop::Store& s, const Access& access, Value* pointer, Value* mask) {
  const DType d = k_.buffers[s.buffer].dtype, wide = compute_dtype(d);
  Lanes old = read(d, access, pointer, mask);
  old.level = level();
  const Val a = cast(add_lanes(d, old), wide), b = cast(value(s.value), wide);
  Val out;
  switch (s.mode) {
    case loop::StoreMode::Add:
      out = add(a, b);
      break;
    case loop::StoreMode::Mul:
      out = mul(a, b);
      break;
    case loop::StoreMode::Min:
      out = minimum(a, b);
      break;
    default:
      out = maximum(a, b);
  }
  return cast(out, d);
}

void BodyEmitter::write_scalar(DType d, Value* pointer, const Lanes& v) {
  Type* type = memory_type(d);
  const llvm::Align align(type->getPrimitiveSizeInBits() / 8);
  b_.CreateAlignedStore(to_memory(d, v.re), pointer, align);
  if (v.im) b_.CreateAlignedStore(v.im, b_.CreateConstGEP1_64(type, pointer, 1), align);
}

void BodyEmitter::write(DType d, const Access& access, Value* pointer, Lanes v, Value* mask) {
  const int count = axis_.count;
  if (!moves_vectors(access, mask)) {
    for (int n = 0; n < count; ++n)
      where(mask ? b_.CreateExtractElement(mask, static_cast<uint64_t>(n)) : nullptr,
            [&] { write_scalar(d, lane_pointer(d, access, pointer, n), lane_of(v, n)); });
    return;
  }
  const llvm::Align align = alignment(d, access);
  if (access.kind != Access::Kind::Contiguous) {
    if (!mask) mask = llvm::Constant::getAllOnesValue(with_count(b_.getInt1Ty(), count));
    b_.CreateMaskedScatter(to_memory(d, v.re), pointer, align, mask);
    if (v.im)
      b_.CreateMaskedScatter(v.im, b_.CreateGEP(memory_type(d), pointer, b_.getInt64(1)), align, mask);
    return;
  }
  Value* all = to_memory(d, v.re);
  if (v.im) {
    all = b_.CreateShuffleVector(v.re, v.im, interleaved(count));
    if (mask) mask = b_.CreateShuffleVector(mask, doubled(count));
  }
  if (mask)
    b_.CreateMaskedStore(all, pointer, align, mask);
  else
    b_.CreateAlignedStore(all, pointer, align);
}

void BodyEmitter::where(Value* condition, const std::function<void()>& f) {
  if (!condition) return f();
  auto* then = llvm::BasicBlock::Create(b_.getContext(), "store", function_);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "stored", function_);
  b_.CreateCondBr(condition, then, after);
  b_.SetInsertPoint(then);
  f();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void BodyEmitter::combine_atomically(DType, loop::StoreMode, Value*, const Lanes&) {
  FL_RAISE(InternalError, "this machine combines nothing atomically");
}

void BodyEmitter::store(const loop::Store& s) {
  const DType d = k_.buffers[s.buffer].dtype;
  const Access access = classify(s.buffer, s.index);
  const int count = lane_count();
  Value* condition = s.mask < 0 ? nullptr : widened(value(s.mask), count).re;
  Value* mask = both(condition, axis_.mask);
  const bool contended = s.mode != loop::StoreMode::Set && is_contended(s);
  // Outside of branches: a repeated scalar is kept for others to use.
  const Lanes stored = widened(value(s.value), count);
  Value* pointer = pointers(s.buffer, s.index, access);
  if (count > 1 && contended) {
    const bool one_element = access.kind == Access::Kind::Uniform;
    for (int n = 0; n < count; ++n)
      where(mask ? b_.CreateExtractElement(mask, static_cast<uint64_t>(n)) : nullptr, [&] {
        combine_atomically(d, s.mode, one_element ? pointer : lane_pointer(d, access, pointer, n),
                           lane_of(stored, n));
      });
    return;
  }
  if (count > 1) {
    FL_ASSERT(access.kind != Access::Kind::Uniform, "the lanes of a vector store to one element");
    const Val v = s.mode == loop::StoreMode::Set ? value(s.value) : updated(s, access, pointer, mask);
    return write(d, access, pointer, widened(v, count), mask);
  }
  where(mask, [&] {
    if (contended) return combine_atomically(d, s.mode, pointer, stored);
    const Val v = s.mode == loop::StoreMode::Set ? value(s.value) : updated(s, access, pointer, nullptr);
    write_scalar(d, pointer, lanes(v));
  });
}

Value* BodyEmitter::failing_lanes(const loop::Assert& a) {
  const int count = lane_count();
  Value* fails = b_.CreateNot(widened(value(a.condition), count).re);
  return both(fails, axis_.mask);
}

}  // namespace fl::codegen
