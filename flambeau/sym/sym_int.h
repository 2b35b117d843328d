// SymInt: an integer, or an expression over the symbols of a trace, in one word.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>

#include "flambeau/sym/expr.h"

namespace fl {

/// Trivially copyable. Arithmetic on two numbers is arithmetic on numbers (checked for overflow only where
/// symbolic); with an expression it makes an expression. A comparison answers for the example sizes of the
/// trace that is active and records the answer there as a guard; without an active trace, comparing
/// expressions raises UnsupportedError unless the answer is the same for all sizes.
class SymInt {
 public:
  SymInt() : data_(0) {}
  SymInt(int64_t v) : data_(v >= kFirstInt ? v : boxed(v)) {}
  SymInt(int v) : data_(v) {}
  SymInt(size_t v) : SymInt(static_cast<int64_t>(v)) {}
  SymInt(const sym::Expr& e);

  bool is_symbolic() const { return data_ < kFirstInt; }
  /// The number; on an expression, its value for the example sizes, guarded.
  int64_t guard_int() const { return is_symbolic() ? guard_slow() : data_; }
  /// The number; raises UnsupportedError on an expression.
  int64_t expect_int() const;
  sym::Expr expr() const;
  std::string str() const;

  friend SymInt operator+(SymInt a, SymInt b) {
    int64_t r;
    return both(a, b) && !__builtin_add_overflow(a.data_, b.data_, &r) ? SymInt(r) : add_slow(a, b);
  }
  friend SymInt operator-(SymInt a, SymInt b) {
    int64_t r;
    return both(a, b) && !__builtin_sub_overflow(a.data_, b.data_, &r) ? SymInt(r) : sub_slow(a, b);
  }
  friend SymInt operator*(SymInt a, SymInt b) {
    int64_t r;
    return both(a, b) && !__builtin_mul_overflow(a.data_, b.data_, &r) ? SymInt(r) : mul_slow(a, b);
  }
  /// Rounds down, as Python's //. Raises ValueError on a zero divisor.
  friend SymInt operator/(SymInt a, SymInt b);
  friend SymInt operator%(SymInt a, SymInt b);
  SymInt operator-() const { return SymInt(0) - *this; }
  SymInt& operator+=(SymInt b) { return *this = *this + b; }
  SymInt& operator-=(SymInt b) { return *this = *this - b; }
  SymInt& operator*=(SymInt b) { return *this = *this * b; }
  SymInt& operator/=(SymInt b) { return *this = *this / b; }

  friend bool operator==(SymInt a, SymInt b) {
    return both(a, b) ? a.data_ == b.data_ : compare(sym::Relation::Eq, a, b);
  }
  friend bool operator!=(SymInt a, SymInt b) { return !(a == b); }
  friend bool operator<(SymInt a, SymInt b) {
    return both(a, b) ? a.data_ < b.data_ : compare(sym::Relation::Lt, a, b);
  }
  friend bool operator<=(SymInt a, SymInt b) {
    return both(a, b) ? a.data_ <= b.data_ : compare(sym::Relation::Le, a, b);
  }
  friend bool operator>(SymInt a, SymInt b) { return b < a; }
  friend bool operator>=(SymInt a, SymInt b) { return b <= a; }

  /// Same number or same expression; never guards.
  bool same_as(SymInt o) const { return data_ == o.data_; }
  int64_t raw() const { return data_; }
  static SymInt from_raw(int64_t raw) {
    SymInt s;
    s.data_ = raw;
    return s;
  }

 private:
  static bool both(SymInt a, SymInt b) { return !a.is_symbolic() && !b.is_symbolic(); }
  static SymInt add_slow(SymInt a, SymInt b);
  static SymInt sub_slow(SymInt a, SymInt b);
  static SymInt mul_slow(SymInt a, SymInt b);
  static bool compare(sym::Relation r, SymInt a, SymInt b);
  int64_t guard_slow() const;
  static int64_t boxed(int64_t v);

  // Words below -2^62 hold the address of an expression's node with the top bit set; numbers below it are
  // constant expressions.
  static constexpr int64_t kFirstInt = -(int64_t{1} << 62);
  int64_t data_;
};

SymInt min(SymInt a, SymInt b);  ///< Without a guard.
SymInt max(SymInt a, SymInt b);
SymInt ceildiv(SymInt a, SymInt b);
/// True only if the relation holds for all sizes; never guards.
bool known_true(sym::Relation r, SymInt a, SymInt b);
inline bool known_equal(SymInt a, SymInt b) { return a.same_as(b) || known_true(sym::Relation::Eq, a, b); }

}  // namespace fl

template <>
struct fmt::formatter<fl::SymInt> : fmt::formatter<std::string> {
  template <class C>
  auto format(const fl::SymInt& s, C& c) const {
    return fmt::formatter<std::string>::format(s.str(), c);
  }
};
