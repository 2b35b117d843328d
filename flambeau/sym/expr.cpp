#include "flambeau/sym/expr.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "flambeau/base/error.h"
#include "flambeau/base/hash.h"
#include "flambeau/sym/memo.h"

namespace fl::sym {
namespace {

using detail::Node;

// Nodes live as long as the process: an expression is an address, and names repeat from compile to compile.
class Interner {
 public:
  const Node* intern(Node&& node) {
    std::lock_guard lock(mutex_);
    auto [begin, end] = table_.equal_range(node.hash);
    for (auto it = begin; it != end; ++it) {
      const Node& o = *it->second;
      if (o.kind == node.kind && o.value == node.value && o.name == node.name && o.args == node.args)
        return &o;
    }
    nodes_.push_back(std::move(node));
    table_.emplace(nodes_.back().hash, &nodes_.back());
    return &nodes_.back();
  }
  const Node* symbol(std::string_view name, int64_t lower) {
    Node n{Kind::Symbol, lower, std::string(name), {}, 0};
    n.hash = hash_combine(std::hash<std::string_view>()(name), static_cast<uint64_t>(lower) + 17);
    return intern(std::move(n));
  }

 private:
  std::mutex mutex_;
  std::deque<Node> nodes_;
  std::unordered_multimap<uint64_t, const Node*> table_;
};

Interner& interner() {
  static Interner* it = new Interner;
  return *it;
}

constexpr int64_t kSmall = 64;
const Node* constant(int64_t v) {
  auto make = [](int64_t x) {
    Node n{Kind::Const, x, {}, {}, hash_combine(0x51, static_cast<uint64_t>(x))};
    return interner().intern(std::move(n));
  };
  static const std::vector<const Node*> small = [&] {
    std::vector<const Node*> out;
    for (int64_t x = -kSmall; x <= kSmall; ++x) out.push_back(make(x));
    return out;
  }();
  if (v >= -kSmall && v <= kSmall) return small[v + kSmall];
  return make(v);
}

Expr make(Kind kind, std::vector<Expr> args) {
  uint64_t h = 0xABCD + static_cast<uint64_t>(kind);
  for (const Expr& a : args) h = hash_combine(h, a.hash());
  return Expr(interner().intern(Node{kind, 0, {}, std::move(args), h}));
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  FL_CHECK(!__builtin_add_overflow(a, b, &r), RuntimeError, "size arithmetic overflows int64: {} + {}", a, b);
  return r;
}
int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  FL_CHECK(!__builtin_mul_overflow(a, b, &r), RuntimeError, "size arithmetic overflows int64: {} * {}", a, b);
  return r;
}

// A polynomial as {monomial, coefficient}; a monomial is its sorted atoms, the constant's is empty.
struct Term {
  std::vector<Expr> atoms;
  int64_t coefficient;
};

int compare_atoms(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (int c = Expr::compare(a[i], b[i])) return c;
  return a.size() == b.size() ? 0 : (a.size() < b.size() ? -1 : 1);
}

void append_term(std::vector<Term>& out, const Expr& e) {
  if (e.is_const()) {
    if (e.value() != 0) out.push_back({{}, e.value()});
  } else if (e.kind() == Kind::Mul) {
    auto args = e.args();
    if (args[0].is_const())
      out.push_back({{args.begin() + 1, args.end()}, args[0].value()});
    else
      out.push_back({{args.begin(), args.end()}, 1});
  } else {
    out.push_back({{e}, 1});
  }
}

std::vector<Term> terms_of(const Expr& e) {
  std::vector<Term> out;
  if (e.kind() == Kind::Add)
    for (const Expr& a : e.args()) append_term(out, a);
  else
    append_term(out, e);
  return out;
}

Expr from_terms(std::vector<Term> terms) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return compare_atoms(a.atoms, b.atoms) < 0; });
  std::vector<Term> merged;
  for (Term& t : terms) {
    if (!merged.empty() && merged.back().atoms == t.atoms)
      merged.back().coefficient = checked_add(merged.back().coefficient, t.coefficient);
    else
      merged.push_back(std::move(t));
    if (merged.back().coefficient == 0) merged.pop_back();
  }
  std::vector<Expr> args;
  for (Term& t : merged) {
    if (t.atoms.empty()) {
      args.push_back(Expr(t.coefficient));
    } else if (t.coefficient == 1 && t.atoms.size() == 1) {
      args.push_back(t.atoms[0]);
    } else {
      std::vector<Expr> factors;
      if (t.coefficient != 1) factors.push_back(Expr(t.coefficient));
      factors.insert(factors.end(), t.atoms.begin(), t.atoms.end());
      args.push_back(make(Kind::Mul, std::move(factors)));
    }
  }
  if (args.empty()) return Expr(0);
  if (args.size() == 1) return args[0];
  return make(Kind::Add, std::move(args));
}

// coefficient and atoms of a lone term, or nothing for a sum.
std::optional<Term> single_term(const Expr& e) {
  auto t = terms_of(e);
  if (t.size() != 1) return std::nullopt;
  return t[0];
}

// t / d if the atoms and the coefficient of d divide t's.
std::optional<Term> divide_term(const Term& t, const Term& d) {
  if (d.coefficient == 0 || t.coefficient % d.coefficient != 0) return std::nullopt;
  Term out{t.atoms, t.coefficient / d.coefficient};
  for (const Expr& a : d.atoms) {
    auto it = std::find(out.atoms.begin(), out.atoms.end(), a);
    if (it == out.atoms.end()) return std::nullopt;
    out.atoms.erase(it);
  }
  return out;
}

// a == divisor * quotient + rest, with as many terms as possible in the quotient.
std::pair<Expr, Expr> split_divisible(const Expr& a, const Expr& divisor) {
  std::vector<Term> quotient, rest;
  auto d = single_term(divisor);
  if (!d) {
    if (a == divisor) return {Expr(1), Expr(0)};
    return {Expr(0), a};
  }
  for (Term& t : terms_of(a)) {
    if (auto q = divide_term(t, *d)) {
      quotient.push_back(*q);
    } else if (d->atoms.empty() && d->coefficient != 0) {
      // A constant divisor: take the multiple of it that the coefficient holds.
      int64_t q = t.coefficient / d->coefficient;
      if (t.coefficient % d->coefficient < 0) q -= d->coefficient > 0 ? 1 : -1;
      if (q != 0) quotient.push_back({t.atoms, q});
      rest.push_back({t.atoms, t.coefficient - q * d->coefficient});
    } else {
      rest.push_back(t);
    }
  }
  return {from_terms(std::move(quotient)), from_terms(std::move(rest))};
}

int64_t floordiv_int(int64_t a, int64_t b) {
  FL_CHECK(b != 0, ValueError, "division of the size expression {} by zero", a);
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));  // the lowest number has no negative
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

// Of the divisor's sign. Nothing in between overflows.
int64_t mod_int(int64_t a, int64_t b) {
  FL_CHECK(b != 0, ValueError, "modulo of the size expression {} by zero", a);
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

bool in_range(const Expr& e, const Expr& size, Ranges ranges) {
  return known_nonnegative(e, ranges) && known_nonnegative(size - 1 - e, ranges);
}

}  // namespace

Expr::Expr(int64_t value) : node_(constant(value)) {}
Expr Expr::symbol(std::string_view name, int64_t lower) { return Expr(interner().symbol(name, lower)); }
Kind Expr::kind() const { return node_->kind; }
int64_t Expr::value() const {
  FL_ASSERT(is_const(), "value() of {}", str());
  return node_->value;
}
const std::string& Expr::name() const { return node_->name; }
int64_t Expr::lower() const { return node_->value; }
std::span<const Expr> Expr::args() const { return node_->args; }
uint64_t Expr::hash() const { return node_->hash; }

int Expr::compare(const Expr& a, const Expr& b) {
  if (a == b) return 0;
  if (a.kind() != b.kind()) return a.kind() < b.kind() ? -1 : 1;
  if (a.is_const()) return a.value() < b.value() ? -1 : 1;
  if (a.is_symbol()) {
    // Shorter names first: s2 before s10.
    if (a.name().size() != b.name().size()) return a.name().size() < b.name().size() ? -1 : 1;
    if (int c = a.name().compare(b.name())) return c;
    return a.lower() < b.lower() ? -1 : 1;
  }
  auto x = a.args(), y = b.args();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (int c = compare(x[i], y[i])) return c;
  return x.size() < y.size() ? -1 : 1;
}

namespace {
Expr sum_of(const Expr& a, const Expr& b) {
  auto t = terms_of(a);
  for (Term& u : terms_of(b)) t.push_back(std::move(u));
  return from_terms(std::move(t));
}
}  // namespace

Expr operator+(const Expr& a, const Expr& b) {
  if (a.is_const() && b.is_const()) return Expr(checked_add(a.value(), b.value()));
  if (a.is_const(0)) return b;
  if (b.is_const(0)) return a;
  thread_local detail::PairMemo<Expr> memo;
  return memo.get(a, b, [&] { return sum_of(a, b); });
}

Expr Expr::operator-() const { return *this * Expr(-1); }
Expr operator-(const Expr& a, const Expr& b) { return a + (-b); }

namespace {
Expr product_of(const Expr& a, const Expr& b) {
  std::vector<Term> out;
  const auto right = terms_of(b);
  for (const Term& x : terms_of(a))
    for (const Term& y : right) {
      Term t{x.atoms, checked_mul(x.coefficient, y.coefficient)};
      t.atoms.insert(t.atoms.end(), y.atoms.begin(), y.atoms.end());
      std::sort(t.atoms.begin(), t.atoms.end(),
                [](const Expr& p, const Expr& q) { return Expr::compare(p, q) < 0; });
      out.push_back(std::move(t));
    }
  return from_terms(std::move(out));
}
}  // namespace

Expr operator*(const Expr& a, const Expr& b) {
  if (a.is_const() && b.is_const()) return Expr(checked_mul(a.value(), b.value()));
  if (a.is_const(1)) return b;
  if (b.is_const(1)) return a;
  thread_local detail::PairMemo<Expr> memo;
  return memo.get(a, b, [&] { return product_of(a, b); });
}

namespace {
/// step * count + rest with 0 <= rest < step and step a divisor, above 1, of a constant.
struct Steps {
  int64_t step;
  Expr count, rest;
};
std::optional<Steps> in_steps(const Expr& e, const Expr& divisor, Ranges ranges) {
  if (!divisor.is_const() || divisor.value() <= 1) return std::nullopt;
  const std::vector<Term> terms = terms_of(e);
  std::vector<int64_t> tried;
  for (const Term& candidate : terms) {
    const int64_t step = std::gcd(divisor.value(), candidate.coefficient);
    if (step <= 1 || candidate.atoms.empty() || std::find(tried.begin(), tried.end(), step) != tried.end())
      continue;
    tried.push_back(step);
    std::vector<Term> whole, rest;
    for (Term t : terms)
      if (!t.atoms.empty() && t.coefficient % step == 0) {
        t.coefficient /= step;
        whole.push_back(std::move(t));
      } else {
        rest.push_back(std::move(t));
      }
    const Expr left = from_terms(std::move(rest));
    if (in_range(left, Expr(step), ranges)) return Steps{step, from_terms(std::move(whole)), left};
  }
  return std::nullopt;
}
}  // namespace

Expr floordiv(const Expr& a, const Expr& b, Ranges ranges) {
  if (a.is_const() && b.is_const()) return Expr(floordiv_int(a.value(), b.value()));
  if (b.is_const(1) || a.is_const(0)) return a;
  FL_CHECK(!b.is_const(0), ValueError, "division of the size expression {} by zero", a.str());
  auto [quotient, rest] = split_divisible(a, b);
  if (rest.is_const(0)) return quotient;
  if (in_range(rest, b, ranges)) return quotient;
  // (x // c) // d == x // (c * d) for positive c and d.
  if (rest.kind() == Kind::FloorDiv && b.is_const() && b.value() > 0 && rest.args()[1].is_const() &&
      rest.args()[1].value() > 0)
    return quotient + floordiv(rest.args()[0], rest.args()[1] * b, ranges);
  // (c * x + r) // (c * d) == x // d where 0 <= r < c.
  if (b.is_const() && b.value() > 0) {
    int64_t g = b.value();
    int64_t constant_part = 0;
    for (const Term& t : terms_of(rest)) {
      if (t.atoms.empty())
        constant_part = t.coefficient;
      else
        g = std::gcd(g, t.coefficient);
    }
    if (g > 1) {
      const int64_t low = mod_int(constant_part, g);
      auto exact = split_divisible(rest - Expr(low), Expr(g));
      if (exact.second.is_const(0)) return quotient + floordiv(exact.first, Expr(b.value() / g), ranges);
    }
  }
  if (const auto s = in_steps(rest, b, ranges))
    return quotient + floordiv(s->count, Expr(b.value() / s->step), ranges);
  return quotient + make(Kind::FloorDiv, {rest, b});
}

Expr mod(const Expr& a, const Expr& b, Ranges ranges) {
  if (a.is_const() && b.is_const()) return Expr(mod_int(a.value(), b.value()));
  if (b.is_const(1)) return Expr(0);
  FL_CHECK(!b.is_const(0), ValueError, "modulo of the size expression {} by zero", a.str());
  Expr rest = split_divisible(a, b).second;
  if (rest.is_const(0)) return Expr(0);
  if (in_range(rest, b, ranges)) return rest;
  if (rest.kind() == Kind::Mod && b.is_const() && rest.args()[1].is_const() && b.value() > 0 &&
      rest.args()[1].value() % b.value() == 0)
    return mod(rest.args()[0], b, ranges);
  if (const auto s = in_steps(rest, b, ranges))
    return Expr(s->step) * mod(s->count, Expr(b.value() / s->step), ranges) + s->rest;
  return make(Kind::Mod, {rest, b});
}

Expr ceildiv(const Expr& a, const Expr& b) { return floordiv(a + b - 1, b); }

namespace {
Expr extremum(Kind kind, const Expr& a, const Expr& b) {
  if (a == b) return a;
  const bool is_min = kind == Kind::Min;
  if (known_nonnegative(b - a)) return is_min ? a : b;
  if (known_nonnegative(a - b)) return is_min ? b : a;
  return Expr::compare(a, b) < 0 ? make(kind, {a, b}) : make(kind, {b, a});
}
}  // namespace

Expr min(const Expr& a, const Expr& b) {
  thread_local detail::PairMemo<Expr> memo;
  return memo.get(a, b, [&] { return extremum(Kind::Min, a, b); });
}
Expr max(const Expr& a, const Expr& b) {
  thread_local detail::PairMemo<Expr> memo;
  return memo.get(a, b, [&] { return extremum(Kind::Max, a, b); });
}

}  // namespace fl::sym
