// Formulas over ScalarOps as C++ expressions. A Num is a value being recorded, or a literal that takes the
// dtype of the operand it meets.
#pragma once
#include <limits>
#include <span>

#include "flambeau/op/scalar_ops.h"

namespace fl::loop::math {

class Num {
 public:
  Num(ScalarOps& ops, Val value) : ops_(&ops), value_(value) {}
  Num(double literal) : literal_(literal) {}  // NOLINT: implicit, so that formulas read as formulas

  bool is_literal() const { return !ops_; }
  ScalarOps& ops() const { return *ops_; }
  DType dtype() const { return value_.dtype; }
  Val value() const { return value_; }
  /// The value; a literal in the dtype of model.
  Val as(const Num& model) const {
    if (ops_) return value_;
    if (is_floating(model.dtype())) return model.ops().constant(model.dtype(), literal_);
    return model.ops().constant(model.dtype(), static_cast<int64_t>(literal_));
  }

 private:
  ScalarOps* ops_ = nullptr;
  Val value_;
  double literal_ = 0;
};

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline Num unary(ScalarOp op, const Num& a) { return {a.ops(), a.ops().emit(op, a.dtype(), a.value())}; }
inline Num binary(ScalarOp op, const Num& a, const Num& b) {
  const Num& model = a.is_literal() ? b : a;
  const Val left = a.as(model), right = b.as(model);
  return {model.ops(), model.ops().emit(op, model.dtype(), left, right)};
}

inline Num operator+(const Num& a, const Num& b) { return binary(ScalarOp::Add, a, b); }
inline Num operator-(const Num& a, const Num& b) { return binary(ScalarOp::Sub, a, b); }
inline Num operator*(const Num& a, const Num& b) { return binary(ScalarOp::Mul, a, b); }
inline Num operator/(const Num& a, const Num& b) { return binary(ScalarOp::Div, a, b); }
inline Num operator&(const Num& a, const Num& b) { return binary(ScalarOp::And, a, b); }
inline Num operator|(const Num& a, const Num& b) { return binary(ScalarOp::Or, a, b); }
inline Num operator^(const Num& a, const Num& b) { return binary(ScalarOp::Xor, a, b); }
inline Num operator<<(const Num& a, int count) { return binary(ScalarOp::Shl, a, Num(count)); }
inline Num operator>>(const Num& a, int count) { return binary(ScalarOp::Shr, a, Num(count)); }

/// Comparisons keep the operands' dtype in emit; the result is bool.
inline Num compare(ScalarOp op, const Num& a, const Num& b) {
  const Num& model = a.is_literal() ? b : a;
  const Val left = a.as(model), right = b.as(model);
  Val result = model.ops().emit(op, left.dtype, left, right);
  result.dtype = DType::Bool;
  return {model.ops(), result};
}
inline Num operator<(const Num& a, const Num& b) { return compare(ScalarOp::Lt, a, b); }
inline Num operator<=(const Num& a, const Num& b) { return compare(ScalarOp::Le, a, b); }
inline Num operator>(const Num& a, const Num& b) { return compare(ScalarOp::Lt, b, a); }
inline Num operator>=(const Num& a, const Num& b) { return compare(ScalarOp::Le, b, a); }
inline Num operator==(const Num& a, const Num& b) { return compare(ScalarOp::Eq, a, b); }
inline Num operator!=(const Num& a, const Num& b) { return compare(ScalarOp::Ne, a, b); }

inline Num select(const Num& condition, const Num& a, const Num& b) {
  const Num& model = a.is_literal() ? b : a;
  const Val left = a.as(model), right = b.as(model);
  return {condition.ops(), condition.ops().select(condition.value(), left, right)};
}
/// As select, both results literals of dtype.
inline Num select(const Num& condition, DType dtype, double a, double b) {
  ScalarOps& s = condition.ops();
  return select(condition, Num(s, s.constant(dtype, a)), Num(s, s.constant(dtype, b)));
}
inline Num fma(const Num& a, const Num& b, const Num& c) {
  const Num& model = a.is_literal() ? (b.is_literal() ? c : b) : a;
  const Val x = a.as(model), y = b.as(model), z = c.as(model);
  return {model.ops(), model.ops().fma(x, y, z)};
}
inline Num cast(const Num& a, DType dtype) { return {a.ops(), a.ops().cast(a.value(), dtype)}; }
inline Num bits(const Num& a) {
  return {a.ops(), a.ops().bitcast(a.value(), a.dtype() == DType::Float64 ? DType::Int64 : DType::Int32)};
}
/// The inverse of bits.
inline Num from_bits(const Num& a) {
  return {a.ops(), a.ops().bitcast(a.value(), a.dtype() == DType::Int64 ? DType::Float64 : DType::Float32)};
}
inline Num abs(const Num& a) { return unary(ScalarOp::Abs, a); }
inline Num sqrt(const Num& a) { return unary(ScalarOp::Sqrt, a); }
inline Num floor(const Num& a) { return unary(ScalarOp::Floor, a); }
inline Num trunc(const Num& a) { return unary(ScalarOp::Trunc, a); }
inline Num round(const Num& a) { return unary(ScalarOp::Round, a); }
inline Num operator-(const Num& a) { return unary(ScalarOp::Neg, a); }
inline Num copysign(const Num& magnitude, const Num& sign) {
  return binary(ScalarOp::Copysign, magnitude, sign);
}
inline Num is_nan(const Num& a) { return a != a; }

/// nan stays nan: one instruction each on x86.
inline Num at_least(const Num& a, double bound) { return select(a < bound, Num(bound), a); }
inline Num at_most(const Num& a, double bound) { return select(a > bound, Num(bound), a); }

/// coefficients[0] + x * (coefficients[1] + ...), by Horner's rule.
inline Num horner(const Num& x, std::span<const double> coefficients) {
  size_t i = coefficients.size() - 1;
  Num sum = coefficients[i];
  while (i-- > 0) sum = fma(sum, x, coefficients[i]);
  return sum;
}

}  // namespace fl::loop::math
