#include "flambeau/sym/sym_int.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "flambeau/base/error.h"
#include "flambeau/sym/shape_env.h"

namespace fl {

namespace {

int64_t tagged(const sym::Expr& e) {
  return static_cast<int64_t>(reinterpret_cast<uint64_t>(e.node()) | (uint64_t{1} << 63));
}

/// The numbers, where both are: inside the word or, below -2^62, as constant expressions.
std::optional<std::pair<int64_t, int64_t>> numbers(SymInt a, SymInt b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return std::pair(a.raw(), b.raw());
  const sym::Expr x = a.expr(), y = b.expr();
  if (!x.is_const() || !y.is_const()) return std::nullopt;
  return std::pair(x.value(), y.value());
}

bool holds(sym::Relation r, int64_t a, int64_t b) {
  switch (r) {
    case sym::Relation::Eq:
      return a == b;
    case sym::Relation::Ne:
      return a != b;
    case sym::Relation::Lt:
      return a < b;
    case sym::Relation::Le:
      return a <= b;
  }
  __builtin_unreachable();
}

}  // namespace

SymInt::SymInt(const sym::Expr& e) : data_(e.is_const() && e.value() >= kFirstInt ? e.value() : tagged(e)) {}

int64_t SymInt::boxed(int64_t v) { return tagged(sym::Expr(v)); }

sym::Expr SymInt::expr() const {
  if (!is_symbolic()) return sym::Expr(data_);
  const uint64_t bits = static_cast<uint64_t>(data_) & ~(uint64_t{1} << 63);
  return sym::Expr(reinterpret_cast<const sym::detail::Node*>(bits));
}

std::string SymInt::str() const { return is_symbolic() ? expr().str() : std::to_string(data_); }

int64_t SymInt::expect_int() const {
  if (!is_symbolic()) return data_;
  const sym::Expr e = expr();
  FL_CHECK(e.is_const(), UnsupportedError, "expected a number here, got the symbolic size {}", str());
  return e.value();
}

int64_t SymInt::guard_slow() const {
  if (const sym::Expr e = expr(); e.is_const()) return e.value();
  auto* env = sym::ShapeEnv::active();
  FL_CHECK(env, UnsupportedError, "the value of the symbolic size {} is needed outside of its trace", str());
  return env->specialize(expr());
}

SymInt SymInt::add_slow(SymInt a, SymInt b) { return a.expr() + b.expr(); }
SymInt SymInt::sub_slow(SymInt a, SymInt b) {
  int64_t r;
  const auto n = numbers(a, b);
  if (n && !__builtin_sub_overflow(n->first, n->second, &r)) return r;
  return a.expr() - b.expr();
}
SymInt SymInt::mul_slow(SymInt a, SymInt b) { return a.expr() * b.expr(); }
SymInt operator/(SymInt a, SymInt b) {
  if (!SymInt::both(a, b) || b.data_ == 0) return sym::floordiv(a.expr(), b.expr());
  const int64_t q = a.data_ / b.data_, r = a.data_ % b.data_;
  return r != 0 && (r < 0) != (b.data_ < 0) ? q - 1 : q;
}
SymInt operator%(SymInt a, SymInt b) {
  if (!SymInt::both(a, b) || b.data_ == 0) return sym::mod(a.expr(), b.expr());
  const int64_t r = a.data_ % b.data_;
  return r != 0 && (r < 0) != (b.data_ < 0) ? r + b.data_ : r;
}

bool SymInt::compare(sym::Relation r, SymInt a, SymInt b) {
  if (const auto n = numbers(a, b)) return holds(r, n->first, n->second);
  if (auto known = sym::decide(r, a.expr(), b.expr())) return *known;
  auto* env = sym::ShapeEnv::active();
  FL_CHECK(env, UnsupportedError, "the symbolic sizes {} and {} are compared outside of their trace", a.str(),
           b.str());
  return env->evaluate(r, a.expr(), b.expr());
}

SymInt min(SymInt a, SymInt b) {
  if (const auto n = numbers(a, b)) return std::min(n->first, n->second);
  return sym::min(a.expr(), b.expr());
}
SymInt max(SymInt a, SymInt b) {
  if (const auto n = numbers(a, b)) return std::max(n->first, n->second);
  return sym::max(a.expr(), b.expr());
}
SymInt ceildiv(SymInt a, SymInt b) { return (a + b - 1) / b; }

bool known_true(sym::Relation r, SymInt a, SymInt b) {
  if (const auto n = numbers(a, b)) return holds(r, n->first, n->second);
  if (const auto* env = sym::ShapeEnv::active()) return env->known(r, a.expr(), b.expr()).value_or(false);
  return sym::decide(r, a.expr(), b.expr()).value_or(false);
}

}  // namespace fl
