#include "flambeau/codegen/common/lane_ops.h"

#include <llvm/IR/Intrinsics.h>

#include <limits>

#include "flambeau/base/error.h"
#include "flambeau/loop/evaluate.h"
#include "flambeau/loop/expansion.h"
#include "flambeau/loop/library_function.h"

namespace fl::codegen {

using llvm::Type;
using llvm::Value;
using llvm::Intrinsic::ID;

LaneOps::LaneOps(llvm::Function* function, llvm::IRBuilder<>& builder, const Machine& machine)
    : b_(builder), function_(function), machine_(machine) {}

LaneOps::Place::Place(LaneOps& ops, int level) : guard_(ops.b_) {
  if (level < ops.level()) ops.b_.SetInsertPoint(ops.hoist_[level]->getTerminator());
}

void LaneOps::open_level(llvm::BasicBlock* hoist) { hoist_.push_back(hoist); }

void LaneOps::close_level() {
  hoist_.pop_back();
  std::erase_if(splats_, [&](const auto& s) { return s.second.level > level(); });
}

Type* LaneOps::register_type(DType d) const {
  switch (d) {
    case DType::Bool:
      return b_.getInt1Ty();
    case DType::UInt8:
    case DType::Int8:
      return b_.getInt8Ty();
    case DType::Int16:
    case DType::Float16:
    case DType::BFloat16:
      return b_.getInt16Ty();
    case DType::Int32:
      return b_.getInt32Ty();
    case DType::Int64:
      return b_.getInt64Ty();
    case DType::Float32:
    case DType::Complex64:
      return b_.getFloatTy();
    default:
      return b_.getDoubleTy();
  }
}

Type* LaneOps::memory_type(DType d) const { return d == DType::Bool ? b_.getInt8Ty() : register_type(d); }

Type* LaneOps::with_count(Type* element, int count) {
  return count == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(count));
}

llvm::AllocaInst* LaneOps::stack_slot(Type* type, std::string_view name) {
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  llvm::BasicBlock& entry = function_->getEntryBlock();
  b_.SetInsertPoint(&entry, entry.begin());
  llvm::AllocaInst* slot = b_.CreateAlloca(type, nullptr, llvm::StringRef(name.data(), name.size()));
  slot->setAlignment(llvm::Align(64));
  return slot;
}

Val LaneOps::add_lanes(DType dtype, Lanes lanes) {
  table_.push_back(lanes);
  return {static_cast<int32_t>(table_.size()) - 1, dtype};
}

Value* LaneOps::widened(Value* scalar, int level, int count) {
  if (count == 1) return scalar;
  if (auto* c = llvm::dyn_cast<llvm::Constant>(scalar))
    return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(count), c);
  for (auto& [key, splat] : splats_)
    if (key.first == scalar && key.second == count) return splat.vector;
  Place place(*this, level);
  Value* out = b_.CreateVectorSplat(count, scalar);
  splats_.push_back({{scalar, count}, {out, level}});
  return out;
}

Value* LaneOps::any_lane(Value* bools) {
  if (machine_.has_vector_memory) return b_.CreateOrReduce(bools);
  const unsigned count = llvm::cast<llvm::FixedVectorType>(bools->getType())->getNumElements();
  Value* out = b_.CreateExtractElement(bools, uint64_t{0});
  for (uint64_t n = 1; n < count; ++n) out = b_.CreateOr(out, b_.CreateExtractElement(bools, n));
  return out;
}

Lanes LaneOps::widened(Val v, int count) {
  Lanes l = lanes(v);
  if (l.count == count) return l;
  FL_ASSERT(l.count == 1, "{} lanes where {} are expected", l.count, count);
  l.re = widened(l.re, l.level, count);
  if (l.im) l.im = widened(l.im, l.level, count);
  l.count = count;
  return l;
}

Val LaneOps::constant(DType dtype, Literal value) {
  const auto bits = loop::ScalarBits::of(dtype, value);
  Type* type = register_type(dtype);
  Lanes out;
  const auto real = [&](double v) { return llvm::ConstantFP::get(type, v); };
  switch (dtype) {
    case DType::Float32:
      out.re = real(bits.get<float>());
      break;
    case DType::Float64:
      out.re = real(bits.get<double>());
      break;
    case DType::Complex64:
      out.re = real(bits.get<std::complex<float>>().real());
      out.im = real(bits.get<std::complex<float>>().imag());
      break;
    case DType::Complex128:
      out.re = real(bits.get<std::complex<double>>().real());
      out.im = real(bits.get<std::complex<double>>().imag());
      break;
    default:
      out.re = llvm::ConstantInt::get(type, static_cast<uint64_t>(bits.get<int64_t>()));
  }
  return add_lanes(dtype, out);
}

Val LaneOps::index(const sym::Expr& e) {
  FL_RAISE(InternalError, "the index {} is asked for where no loops are known", e.str());
}

Value* LaneOps::number(Value* like, double v) { return llvm::ConstantFP::get(like->getType(), v); }
Value* LaneOps::integer(Value* like, int64_t v) {
  return llvm::ConstantInt::get(like->getType(), static_cast<uint64_t>(v), true);
}

Val LaneOps::emit(ScalarOp op, DType dtype, Val a, Val b, Val c) {
  if (auto v = loop::expand_operation(*this, op, a, b)) return *v;
  const int operands = arity(op);
  const Val all[] = {a, b, c};
  Lanes out;
  for (int n = 0; n < operands; ++n) {
    out.count = std::max(out.count, lanes(all[n]).count);
    out.level = std::max(out.level, lanes(all[n]).level);
  }
  const Lanes x = widened(a, out.count), y = operands > 1 ? widened(b, out.count) : Lanes{},
              z = operands > 2 ? widened(c, out.count) : Lanes{};
  const DType result = loop::result_dtype(op, dtype, a.dtype, b.dtype), d = a.dtype;
  Place place(*this, out.level);
  const auto set = [&](const Lanes& v) {
    out.re = v.re;
    out.im = v.im;
  };
  if (op == ScalarOp::Cast) {
    set(convert(result, d, x));
  } else if (op == ScalarOp::Bitcast) {
    set(x);
    Type* type = with_count(register_type(result), out.count);
    if (d == DType::Bool)
      out.re = b_.CreateZExt(x.re, type);
    else if (result == DType::Bool)
      out.re = b_.CreateICmpNE(x.re, integer(x.re, 0));
    else if (!is_complex(d))
      out.re = b_.CreateBitCast(x.re, type);
  } else if (op == ScalarOp::Select) {
    out.re = b_.CreateSelect(x.re, y.re, z.re);
    if (y.im) out.im = b_.CreateSelect(x.re, y.im, z.im);
  } else if (op >= ScalarOp::Eq && op <= ScalarOp::Le) {
    out.re = compare(op, d, x, y);
  } else if (op == ScalarOp::Real) {
    out.re = x.re;
  } else if (op == ScalarOp::Imag) {
    out.re = x.im;
  } else if (op == ScalarOp::Complex) {
    out.re = x.re;
    out.im = y.re;
  } else if (is_complex(d)) {
    set(complex_op(op, x, y));
  } else if (d == DType::Bool) {
    out.re = bool_op(op, x.re, y.re);
  } else if (is_floating(d)) {
    out.re = float_op(op, d, x.re, y.re, z.re, out.count);
  } else {
    out.re = loop::library_function(op, d) ? call_library(op, d, x.re, y.re, out.count)
                                           : integer_op(op, d, x.re, y.re, z.re);
  }
  return add_lanes(result, out);
}

Lanes LaneOps::convert(DType to, DType from, const Lanes& a) {
  if (is_complex(from)) {
    if (to == DType::Bool) {
      Lanes out;
      out.re = b_.CreateOr(b_.CreateFCmpUNE(a.re, number(a.re, 0)), b_.CreateFCmpUNE(a.im, number(a.im, 0)));
      return out;
    }
    Lanes out = convert_real(real_dtype(to), real_dtype(from), a.re, a.count);
    if (is_complex(to)) out.im = convert_real(real_dtype(to), real_dtype(from), a.im, a.count).re;
    return out;
  }
  Lanes out = convert_real(real_dtype(to), from, a.re, a.count);
  if (is_complex(to)) out.im = llvm::Constant::getNullValue(out.re->getType());
  return out;
}

Lanes LaneOps::convert_real(DType to, DType from, Value* x, int count) {
  Lanes out;
  out.re = x;
  if (to == from) return out;
  Type* type = with_count(register_type(to), count);
  const bool from_half = from == DType::Float16 || from == DType::BFloat16;
  if (from_half) return convert_real(to, DType::Float32, half_to_float(from, x, count), count);
  if (to == DType::Float16 || to == DType::BFloat16) {
    const Lanes f = convert_real(DType::Float32, from, x, count);
    out.re = float_to_half(to, f.re, count);
  } else if (is_floating(from)) {
    if (to == DType::Bool)
      out.re = b_.CreateFCmpUNE(x, number(x, 0));
    else if (is_floating(to))
      out.re = to == DType::Float64 ? b_.CreateFPExt(x, type) : b_.CreateFPTrunc(x, type);
    else
      out.re = float_to_integer(to, from, x);
  } else if (to == DType::Bool) {
    out.re = b_.CreateICmpNE(x, integer(x, 0));
  } else if (is_floating(to)) {
    if (from != DType::Int64 && from != DType::Int32)
      x = b_.CreateIntCast(x, with_count(b_.getInt32Ty(), count), info(from).is_signed);
    out.re = b_.CreateSIToFP(x, type);
  } else {
    out.re = b_.CreateIntCast(x, type, info(from).is_signed);
  }
  return out;
}

Value* LaneOps::half_to_float(DType from, Value* x, int count) {
  Type* wide = with_count(b_.getInt32Ty(), count);
  Type* real = with_count(b_.getFloatTy(), count);
  if (from == DType::BFloat16)
    return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(x, wide), integer(b_.CreateZExt(x, wide), 16)), real);
  if (machine_.has_half_conversion)
    return b_.CreateFPExt(b_.CreateBitCast(x, with_count(b_.getHalfTy(), count)), real);
  // As to_float(Half) of loop/evaluate.cpp.
  Value* bits = b_.CreateZExt(x, wide);
  const auto literal = [&](int64_t v) { return integer(bits, v); };
  Value* sign = b_.CreateShl(b_.CreateAnd(bits, literal(0x8000)), literal(16));
  Value* exponent = b_.CreateAnd(b_.CreateLShr(bits, literal(10)), literal(31));
  Value* mantissa = b_.CreateAnd(bits, literal(0x3ff));
  Value* high = b_.CreateShl(mantissa, literal(13));
  Value* quiet =
      b_.CreateSelect(b_.CreateICmpNE(mantissa, literal(0)), literal(0x7fc00000), literal(0x7f800000));
  Value* special = b_.CreateOr(quiet, high);
  Value* normal = b_.CreateOr(b_.CreateShl(b_.CreateAdd(exponent, literal(112)), literal(23)), high);
  Value* small = b_.CreateSIToFP(mantissa, real);
  small = b_.CreateBitCast(b_.CreateFMul(small, number(small, 0x1p-24)), wide);
  Value* magnitude = b_.CreateSelect(b_.CreateICmpEQ(exponent, literal(0)), small, normal);
  magnitude = b_.CreateSelect(b_.CreateICmpEQ(exponent, literal(31)), special, magnitude);
  return b_.CreateBitCast(b_.CreateOr(sign, magnitude), real);
}

Value* LaneOps::float_to_half(DType to, Value* x, int count) {
  Type* wide = with_count(b_.getInt32Ty(), count);
  Type* narrow = with_count(b_.getInt16Ty(), count);
  if (to == DType::Float16 && machine_.has_half_conversion)
    return b_.CreateBitCast(b_.CreateFPTrunc(x, with_count(b_.getHalfTy(), count)), narrow);
  if (to == DType::BFloat16 && machine_.has_bfloat_conversion)
    return b_.CreateBitCast(b_.CreateFPTrunc(x, with_count(b_.getBFloatTy(), count)), narrow);
  Value* bits = b_.CreateBitCast(x, wide);
  const auto literal = [&](int64_t v) { return integer(bits, v); };
  const auto bit = [&](int n) { return b_.CreateAnd(b_.CreateLShr(bits, literal(n)), literal(1)); };
  Value* is_nan = b_.CreateFCmpUNO(x, x);
  Value* sign = b_.CreateAnd(b_.CreateLShr(bits, literal(16)), literal(0x8000));
  Value* out;
  if (to == DType::BFloat16) {
    Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(bit(16), literal(0x7fff)));
    out = b_.CreateSelect(is_nan, b_.CreateOr(sign, literal(0x7fc0)), b_.CreateLShr(rounded, literal(16)));
  } else {
    // As to_half() of loop/evaluate.cpp.
    Value* magnitude = b_.CreateAnd(bits, literal(0x7fffffff));
    Value* half = number(x, 0.5);
    Value* denormal = b_.CreateFAdd(b_.CreateBitCast(magnitude, x->getType()), half);
    denormal = b_.CreateSub(b_.CreateBitCast(denormal, wide), literal(0x3f000000));
    Value* rounded = b_.CreateAdd(magnitude, b_.CreateAdd(bit(13), literal(0xfff)));
    rounded = b_.CreateLShr(b_.CreateSub(rounded, literal(0x38000000)), literal(13));
    Value* finite = b_.CreateSelect(b_.CreateICmpULT(magnitude, literal(0x38800000)), denormal, rounded);
    out = b_.CreateSelect(b_.CreateICmpUGE(magnitude, literal(0x477ff000)), literal(0x7c00), finite);
    out = b_.CreateSelect(is_nan, literal(0x7e00), out);
    out = b_.CreateOr(out, sign);
  }
  return b_.CreateTrunc(out, narrow);
}

// What does not fit gives the least value, as x86's conversions do; see loop/evaluate.h.
Value* LaneOps::float_to_integer(DType to, DType from, Value* x) {
  const bool wide = to == DType::Int64;
  Type* middle = x->getType()->getWithNewType(wide ? b_.getInt64Ty() : b_.getInt32Ty());
  const double limit = wide ? 0x1p63 : 0x1p31;
  Value* above = from == DType::Float64 && !wide ? b_.CreateFCmpOGT(x, number(x, -limit - 1))
                                                 : b_.CreateFCmpOGE(x, number(x, -limit));
  Value* fits = b_.CreateAnd(above, b_.CreateFCmpOLT(x, number(x, limit)));
  Value* least =
      llvm::ConstantInt::get(middle, static_cast<uint64_t>(wide ? std::numeric_limits<int64_t>::min()
                                                                : std::numeric_limits<int32_t>::min()));
  Value* out = b_.CreateSelect(fits, b_.CreateFPToSI(x, middle), least);
  return b_.CreateIntCast(out, x->getType()->getWithNewType(register_type(to)), true);
}

Value* LaneOps::integer_op(ScalarOp op, DType d, Value* a, Value* b, Value* c) {
  const bool is_signed = info(d).is_signed;
  switch (op) {
    case ScalarOp::Neg:
      return b_.CreateNeg(a);
    case ScalarOp::Abs:
      if (!is_signed) return a;
      if (machine_.abs_wraps) return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b_.getFalse());
      // As a product, which is not made an abs again.
      return b_.CreateMul(a,
                          b_.CreateSelect(b_.CreateICmpSLT(a, integer(a, 0)), integer(a, -1), integer(a, 1)));
    case ScalarOp::Not:
      return b_.CreateNot(a);
    case ScalarOp::Add:
      return b_.CreateAdd(a, b);
    case ScalarOp::Sub:
      return b_.CreateSub(a, b);
    case ScalarOp::Mul:
      return b_.CreateMul(a, b);
    case ScalarOp::Fma:
      return b_.CreateAdd(b_.CreateMul(a, b), c);
    case ScalarOp::Minimum:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case ScalarOp::Maximum:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case ScalarOp::And:
      return b_.CreateAnd(a, b);
    case ScalarOp::Or:
      return b_.CreateOr(a, b);
    case ScalarOp::Xor:
      return b_.CreateXor(a, b);
    case ScalarOp::Shl:
    case ScalarOp::Shr:
      return shift(op, d, a, b);
    case ScalarOp::Div:
    case ScalarOp::Rem:
      return divide_integers(op, d, a, b);
    case ScalarOp::Mulhi: {
      Type* wide = a->getType()->getWithNewType(b_.getInt64Ty());
      Value* product = b_.CreateMul(b_.CreateZExt(a, wide), b_.CreateZExt(b, wide));
      return b_.CreateTrunc(b_.CreateLShr(product, integer(product, 32)), a->getType());
    }
    default:
      FL_RAISE(InternalError, "{} on {} reaches code generation", name(op), name(d));
  }
}

Value* LaneOps::shift(ScalarOp op, DType d, Value* a, Value* b) {
  const int64_t bits = 8 * size_of(d);
  Value* fits = b_.CreateICmpULT(b, integer(b, bits));
  if (op == ScalarOp::Shl) {
    Value* count = b_.CreateSelect(fits, b, integer(b, 0));
    return b_.CreateSelect(fits, b_.CreateShl(a, count), integer(a, 0));
  }
  if (!info(d).is_signed) {
    Value* count = b_.CreateSelect(fits, b, integer(b, 0));
    return b_.CreateSelect(fits, b_.CreateLShr(a, count), integer(a, 0));
  }
  return b_.CreateAShr(a, b_.CreateSelect(fits, b, integer(b, bits - 1)));
}

// The divisor is made 1 where the machine's division would trap.
Value* LaneOps::divide_integers(ScalarOp op, DType d, Value* a, Value* b) {
  Value* zero = b_.CreateICmpEQ(b, integer(b, 0));
  Value* bad = zero;
  if (info(d).is_signed) {
    const int64_t least = std::numeric_limits<int64_t>::min() >> (64 - 8 * size_of(d));
    bad = b_.CreateOr(
        zero, b_.CreateAnd(b_.CreateICmpEQ(a, integer(a, least)), b_.CreateICmpEQ(b, integer(b, -1))));
  }
  Value* divisor = b_.CreateSelect(bad, integer(b, 1), b);
  if (op == ScalarOp::Rem) return info(d).is_signed ? b_.CreateSRem(a, divisor) : b_.CreateURem(a, divisor);
  Value* quotient = info(d).is_signed ? b_.CreateSDiv(a, divisor) : b_.CreateUDiv(a, divisor);
  return b_.CreateSelect(zero, integer(a, 0), quotient);
}

Value* LaneOps::bool_op(ScalarOp op, Value* a, Value* b) {
  switch (op) {
    case ScalarOp::Not:
      return b_.CreateNot(a);
    case ScalarOp::Add:
    case ScalarOp::Or:
    case ScalarOp::Maximum:
      return b_.CreateOr(a, b);
    case ScalarOp::Mul:
    case ScalarOp::And:
    case ScalarOp::Minimum:
      return b_.CreateAnd(a, b);
    case ScalarOp::Xor:
      return b_.CreateXor(a, b);
    default:
      FL_RAISE(InternalError, "{} on bool reaches code generation", name(op));
  }
}

// a where it wins or is nan.
Value* LaneOps::choose_extreme(Value* wins, Value* a, Value* b) {
  Value* is_nan = b_.CreateFCmpUNO(a, a);
  if (machine_.has_vector_memory) return b_.CreateSelect(is_nan, a, b_.CreateSelect(wins, a, b));
  return b_.CreateSelect(b_.CreateOr(wins, is_nan), a, b);
}

Value* LaneOps::float_op(ScalarOp op, DType d, Value* a, Value* b, Value* c, int count) {
  const auto unary = [&](ID id) { return b_.CreateUnaryIntrinsic(id, a); };
  switch (op) {
    case ScalarOp::Neg:
      return b_.CreateFNeg(a);
    case ScalarOp::Abs:
      return unary(llvm::Intrinsic::fabs);
    case ScalarOp::Floor:
      return unary(llvm::Intrinsic::floor);
    case ScalarOp::Ceil:
      return unary(llvm::Intrinsic::ceil);
    case ScalarOp::Trunc:
      return unary(llvm::Intrinsic::trunc);
    case ScalarOp::Round:
      return unary(llvm::Intrinsic::roundeven);
    case ScalarOp::Sqrt:
      return unary(llvm::Intrinsic::sqrt);
    case ScalarOp::Add:
      return b_.CreateFAdd(a, b);
    case ScalarOp::Sub:
      return b_.CreateFSub(a, b);
    case ScalarOp::Mul:
      return b_.CreateFMul(a, b);
    case ScalarOp::Div:
      return b_.CreateFDiv(a, b);
    case ScalarOp::Minimum:
      return choose_extreme(b_.CreateFCmpOLT(a, b), a, b);
    case ScalarOp::Maximum:
      return choose_extreme(b_.CreateFCmpOLT(b, a), a, b);
    case ScalarOp::Copysign:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a, b);
    case ScalarOp::Fma:
      return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
    default:
      return call_library(op, d, a, b, count);
  }
}

Lanes LaneOps::complex_op(ScalarOp op, const Lanes& a, const Lanes& b) {
  Lanes out;
  switch (op) {
    case ScalarOp::Neg:
      out.re = b_.CreateFNeg(a.re);
      out.im = b_.CreateFNeg(a.im);
      return out;
    case ScalarOp::Add:
      out.re = b_.CreateFAdd(a.re, b.re);
      out.im = b_.CreateFAdd(a.im, b.im);
      return out;
    case ScalarOp::Sub:
      out.re = b_.CreateFSub(a.re, b.re);
      out.im = b_.CreateFSub(a.im, b.im);
      return out;
    case ScalarOp::Mul:
      out.re = b_.CreateFSub(b_.CreateFMul(a.re, b.re), b_.CreateFMul(a.im, b.im));
      out.im = b_.CreateFAdd(b_.CreateFMul(a.re, b.im), b_.CreateFMul(a.im, b.re));
      return out;
    case ScalarOp::Div:
      return complex_divide(a, b);
    default:
      FL_RAISE(InternalError, "{} on complex numbers reaches code generation", name(op));
  }
}

// divide() of loop/evaluate.cpp without its branches.
Lanes LaneOps::complex_divide(const Lanes& n, const Lanes& d) {
  Value *abs_re = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, d.re),
        *abs_im = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, d.im);
  Value* real_is_larger = b_.CreateFCmpOGE(abs_re, abs_im);
  Value *large = b_.CreateSelect(real_is_larger, d.re, d.im),
        *small = b_.CreateSelect(real_is_larger, d.im, d.re);
  Value* ratio = b_.CreateFDiv(small, large);
  Value* scale = b_.CreateFDiv(number(ratio, 1), b_.CreateFAdd(large, b_.CreateFMul(small, ratio)));
  Value *re_ratio = b_.CreateFMul(n.re, ratio), *im_ratio = b_.CreateFMul(n.im, ratio);
  Value* re = b_.CreateSelect(real_is_larger, b_.CreateFAdd(n.re, im_ratio), b_.CreateFAdd(re_ratio, n.im));
  Value* im = b_.CreateSelect(real_is_larger, b_.CreateFSub(n.im, re_ratio), b_.CreateFSub(im_ratio, n.re));
  Value* zero =
      b_.CreateAnd(b_.CreateFCmpOEQ(d.re, number(ratio, 0)), b_.CreateFCmpOEQ(d.im, number(ratio, 0)));
  Lanes out;
  out.re = b_.CreateSelect(zero, b_.CreateFDiv(n.re, abs_re), b_.CreateFMul(re, scale));
  out.im = b_.CreateSelect(zero, b_.CreateFDiv(n.im, abs_im), b_.CreateFMul(im, scale));
  return out;
}

Value* LaneOps::compare(ScalarOp op, DType d, const Lanes& a, const Lanes& b) {
  if (is_complex(d)) {
    Value* equal = b_.CreateAnd(b_.CreateFCmpOEQ(a.re, b.re), b_.CreateFCmpOEQ(a.im, b.im));
    return op == ScalarOp::Eq ? equal : b_.CreateNot(equal);
  }
  using P = llvm::CmpInst;
  if (is_floating(d)) {
    const auto predicate = op == ScalarOp::Eq   ? P::FCMP_OEQ
                           : op == ScalarOp::Ne ? P::FCMP_UNE
                           : op == ScalarOp::Lt ? P::FCMP_OLT
                                                : P::FCMP_OLE;
    return b_.CreateFCmp(predicate, a.re, b.re);
  }
  if (d == DType::Bool) {  // not every machine compares single bits
    if (op == ScalarOp::Eq) return b_.CreateNot(b_.CreateXor(a.re, b.re));
    if (op == ScalarOp::Ne) return b_.CreateXor(a.re, b.re);
    return op == ScalarOp::Lt ? b_.CreateAnd(b_.CreateNot(a.re), b.re)
                              : b_.CreateOr(b_.CreateNot(a.re), b.re);
  }
  const bool is_signed = info(d).is_signed;
  const auto predicate = op == ScalarOp::Eq   ? P::ICMP_EQ
                         : op == ScalarOp::Ne ? P::ICMP_NE
                         : op == ScalarOp::Lt ? (is_signed ? P::ICMP_SLT : P::ICMP_ULT)
                                              : (is_signed ? P::ICMP_SLE : P::ICMP_ULE);
  return b_.CreateICmp(predicate, a.re, b.re);
}

// Lanes go through the stack; the function takes them one by one.
Value* LaneOps::call_library(ScalarOp op, DType d, Value* a, Value* b, int count) {
  FL_ASSERT(loop::library_function(op, d), "no function for {} on {}", name(op), name(d));
  llvm::Module* module = function_->getParent();
  Type* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, pointer, b_.getInt64Ty()}, false);
  llvm::FunctionCallee callee = module->getOrInsertFunction(loop::library_function_name(op, d), type);
  Value *left = stack_slot(a->getType(), "left"), *out = stack_slot(a->getType(), "result");
  b_.CreateStore(a, left);
  Value* right = llvm::ConstantPointerNull::get(b_.getPtrTy());
  if (b) {
    right = stack_slot(b->getType(), "right");
    b_.CreateStore(b, right);
  }
  b_.CreateCall(callee, {left, right, out, b_.getInt64(count)})->setDoesNotThrow();
  return b_.CreateLoad(a->getType(), out);
}

}  // namespace fl::codegen
