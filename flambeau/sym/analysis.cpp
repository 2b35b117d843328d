// Questions about expressions: rewriting, values, bounds.
#include <algorithm>

#include "flambeau/base/error.h"
#include "flambeau/sym/expr.h"
#include "flambeau/sym/memo.h"

namespace fl::sym {
namespace {

using Map = std::function<std::optional<Expr>(const Expr&)>;

std::span<const Expr> summands(const Expr& e);
std::span<const Expr> factors(const Expr& e);

/// What is left of a product without one of its factors.
Expr without(const Expr& term, const Expr& factor) {
  Expr rest = 1;
  bool found = false;
  for (const Expr& g : factors(term)) {
    if (!found && g == factor)
      found = true;
    else
      rest *= g;
  }
  return rest;
}

// e with c*b*(x // b) + c*(x % b), where `term` is the second, as c*x; nothing if there is no such sum. The
// quotient may be that of another number with the same remainder: (x % (k*b)) // b.
std::optional<Expr> join_one(const Expr& e, const Expr& term, const Expr& remainder) {
  const Expr b = remainder.args()[1], c = without(term, remainder);
  const auto shorter = [&](const Expr& x) -> std::optional<Expr> {
    const Expr joined = e - term - c * b * floordiv(x, b) + c * x;
    return summands(joined).size() < summands(e).size() ? std::optional(joined) : std::nullopt;
  };
  if (auto joined = shorter(remainder.args()[0])) return joined;
  for (const Expr& other : summands(e))
    for (const Expr& f : factors(other))
      if (f.kind() == Kind::FloorDiv && f.args()[1] == b && mod(f.args()[0], b) == remainder)
        if (auto joined = shorter(f.args()[0])) return joined;
  return std::nullopt;
}

// e with c*b*((w + x // b) % m) + c*(x % b), where `term` is the second, as c*((b*w + x) % (b*m)).
std::optional<Expr> join_two(const Expr& e, const Expr& term, const Expr& remainder, Ranges ranges) {
  const Expr b = remainder.args()[1], c = without(term, remainder);
  for (const Expr& other : summands(e))
    for (const Expr& f : factors(other)) {
      if (f.kind() != Kind::Mod || !(without(other, f) == c * b)) continue;
      for (const Expr& q : summands(f.args()[0])) {
        if (q.kind() != Kind::FloorDiv || !(q.args()[1] == b) || !(mod(q.args()[0], b) == remainder))
          continue;
        const Expr x = b * (f.args()[0] - q) + q.args()[0];
        return e - term - other + c * mod(x, b * f.args()[1], ranges);
      }
    }
  return std::nullopt;
}

// An index taken apart and put together again.
Expr join_divisions(Expr e, Ranges ranges) {
  for (bool again = true; again;) {
    again = false;
    for (const Expr& term : summands(e)) {
      for (const Expr& f : factors(term)) {
        if (f.kind() != Kind::Mod) continue;
        auto joined = join_one(e, term, f);
        if (!joined) joined = join_two(e, term, f, ranges);
        if (!joined) continue;
        e = *joined;
        again = true;
        break;
      }
      if (again) break;
    }
  }
  return e;
}

Expr rebuild(const Expr& e, const Map& map, Ranges ranges) {
  switch (e.kind()) {
    case Kind::Const:
      return e;
    case Kind::Symbol: {
      auto r = map(e);
      return r ? *r : e;
    }
    default:
      break;
  }
  if (auto r = map(e)) return *r;
  std::vector<Expr> args;
  for (const Expr& a : e.args()) args.push_back(rebuild(a, map, ranges));
  switch (e.kind()) {
    case Kind::Add: {
      Expr out(0);
      for (const Expr& a : args) out += a;
      return join_divisions(out, ranges);
    }
    case Kind::Mul: {
      Expr out(1);
      for (const Expr& a : args) out *= a;
      return out;
    }
    case Kind::FloorDiv:
      return floordiv(args[0], args[1], ranges);
    case Kind::Mod:
      return mod(args[0], args[1], ranges);
    case Kind::Min:
      return min(args[0], args[1]);
    default:
      return max(args[0], args[1]);
  }
}

void collect(const Expr& e, std::vector<Expr>& out) {
  if (e.is_symbol()) {
    if (std::find(out.begin(), out.end(), e) == out.end()) out.push_back(e);
  } else if (!e.is_const()) {
    for (const Expr& a : e.args()) collect(a, out);
  }
}

std::span<const Expr> summands(const Expr& e) {
  if (e.kind() == Kind::Add) return e.args();
  return {&e, 1};
}
std::span<const Expr> factors(const Expr& e) {
  if (e.kind() == Kind::Mul) return e.args();
  return {&e, 1};
}

// The first atom that is neither constant nor symbol, with the side of its bound that makes the term
// smallest.
std::optional<Expr> find_atom(const Expr& e) {
  for (const Expr& t : summands(e))
    for (const Expr& f : factors(t))
      if (!f.is_const() && !f.is_symbol()) return f;
  return std::nullopt;
}

bool nonnegative(const Expr& e, Ranges ranges, int depth);

// Whether products of two such expressions stay far from the ends of int64.
bool is_small(const Expr& e) {
  return std::ranges::all_of(summands(e), [](const Expr& t) {
    const Expr& head = factors(t)[0];
    return !head.is_const() || std::abs(head.value()) < int64_t{1} << 30;
  });
}

// e with the atom replaced by a bound of it that can only make e smaller; nothing if no such bound is known.
std::optional<Expr> lower_by_atom(const Expr& e, const Expr& atom, Ranges ranges, int depth) {
  // e == c * atom + r, treating the atom as a symbol.
  const Expr stand_in = Expr::symbol("$atom");
  Expr swapped =
      substitute(e, [&](const Expr& x) { return x == atom ? std::optional(stand_in) : std::nullopt; });
  auto affine = affine_in(swapped, stand_in);
  if (!affine) return std::nullopt;
  auto& [c, r] = *affine;
  const bool positive = nonnegative(c, ranges, depth + 1);
  if (!positive && !nonnegative(-c, ranges, depth + 1)) return std::nullopt;
  const Expr &x = atom.args()[0], &y = atom.args()[1];
  switch (atom.kind()) {
    case Kind::Mod:
      if (!nonnegative(y - 1, ranges, depth + 1)) return std::nullopt;
      return positive ? r : r + c * (y - 1);
    case Kind::FloorDiv:
      if (!nonnegative(y - 1, ranges, depth + 1)) return std::nullopt;
      // y * (x // y) lies in [x - y + 1, x]; with x >= 0 the quotient itself is in [0, x].
      if (!positive) {
        if (auto k = exact_divide(c, y)) return r + *k * x;
        // y * e >= y * r + c * x; and an integer is not negative where y times it is above -y.
        if (is_small(y) && is_small(r) && is_small(c * x)) return y * r + c * x + y - 1;
        return std::nullopt;
      }
      if (auto k = exact_divide(c, y)) return r + *k * (x - y + 1);
      return nonnegative(x, ranges, depth + 1) ? std::optional(r) : std::nullopt;
    case Kind::Max:
      if (positive) return nonnegative(r + c * x, ranges, depth + 1) ? r + c * x : r + c * y;
      return std::nullopt;
    case Kind::Min:
      if (!positive) return nonnegative(r + c * x, ranges, depth + 1) ? r + c * x : r + c * y;
      if (nonnegative(r + c * x, ranges, depth + 1) && nonnegative(r + c * y, ranges, depth + 1))
        return Expr(0);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

bool nonnegative(const Expr& e, Ranges ranges, int depth) {
  if (e.is_const()) return e.value() >= 0;
  if (depth > 12) return false;
  if (auto atom = find_atom(e)) {
    auto lower = lower_by_atom(e, *atom, ranges, depth);
    return lower && nonnegative(*lower, ranges, depth + 1);
  }
  // Loop variables: put in the end of the range that makes e smallest.
  for (const Range& range : ranges) {
    if (!depends_on(e, range.variable)) continue;
    auto affine = affine_in(e, range.variable);
    if (!affine) return false;
    auto& [c, r] = *affine;
    if (nonnegative(c, ranges, depth + 1)) return nonnegative(r, ranges, depth + 1);
    if (nonnegative(-c, ranges, depth + 1)) return nonnegative(r + c * (range.size - 1), ranges, depth + 1);
    return false;
  }
  for (const Expr& s : symbols_of(e))
    if (s.lower() <= kUnbounded) return false;
  // Only symbols are left: with s = lower + t, t >= 0, all coefficients must be >= 0.
  Expr shifted = substitute(e, [](const Expr& s) -> std::optional<Expr> {
    if (!s.is_symbol() || s.lower() == 0) return std::nullopt;
    return Expr::symbol(s.name() + "'", 0) + Expr(s.lower());
  });
  for (const Expr& t : summands(shifted)) {
    const Expr& head = factors(t)[0];
    if (head.is_const() && head.value() < 0) return false;
  }
  return true;
}

}  // namespace

Expr simplify(const Expr& e, Ranges ranges) {
  return rebuild(
      e, [](const Expr&) { return std::optional<Expr>(); }, ranges);
}

Expr substitute(const Expr& e, const Map& map) { return rebuild(e, map, {}); }

int64_t evaluate(const Expr& e, const std::function<int64_t(const Expr&)>& lookup) {
  switch (e.kind()) {
    case Kind::Const:
      return e.value();
    case Kind::Symbol:
      return lookup(e);
    case Kind::Add: {
      int64_t out = 0;
      for (const Expr& a : e.args()) out += evaluate(a, lookup);
      return out;
    }
    case Kind::Mul: {
      int64_t out = 1;
      for (const Expr& a : e.args()) out *= evaluate(a, lookup);
      return out;
    }
    default:
      break;
  }
  const int64_t x = evaluate(e.args()[0], lookup), y = evaluate(e.args()[1], lookup);
  switch (e.kind()) {
    case Kind::FloorDiv:
      return floordiv(Expr(x), Expr(y)).value();
    case Kind::Mod:
      return mod(Expr(x), Expr(y)).value();
    case Kind::Min:
      return std::min(x, y);
    default:
      return std::max(x, y);
  }
}

std::vector<Expr> symbols_of(const Expr& e) {
  std::vector<Expr> out;
  collect(e, out);
  return out;
}

bool depends_on(const Expr& e, const Expr& symbol) {
  if (e == symbol) return true;
  if (e.is_symbol() || e.is_const()) return false;
  return std::any_of(e.args().begin(), e.args().end(), [&](const Expr& a) { return depends_on(a, symbol); });
}

std::optional<std::pair<Expr, Expr>> affine_in(const Expr& e, const Expr& variable) {
  Expr coefficient(0), rest(0);
  for (const Expr& t : summands(e)) {
    if (!depends_on(t, variable)) {
      rest += t;
      continue;
    }
    Expr others(1);
    int count = 0;
    for (const Expr& f : factors(t)) {
      if (f == variable)
        ++count;
      else if (depends_on(f, variable))
        return std::nullopt;
      else
        others *= f;
    }
    if (count != 1) return std::nullopt;
    coefficient += others;
  }
  return std::pair(coefficient, rest);
}

std::optional<Expr> exact_divide(const Expr& e, const Expr& divisor) {
  if (divisor.is_const(0)) return std::nullopt;
  if (e == divisor) return Expr(1);
  Expr out(0);
  for (const Expr& t : summands(e)) {
    Expr q = floordiv(t, divisor);
    if (!(q * divisor == t)) return std::nullopt;
    out += q;
  }
  return out;
}

bool known_nonnegative(const Expr& e, Ranges ranges) { return nonnegative(e, ranges, 0); }

namespace {
std::optional<bool> decide_anew(Relation r, const Expr& lhs, const Expr& rhs, Ranges ranges) {
  const Expr d = rhs - lhs;
  switch (r) {
    case Relation::Eq:
      if (d.is_const()) return d.value() == 0;
      if (known_nonnegative(d - 1, ranges) || known_nonnegative(-d - 1, ranges)) return false;
      return std::nullopt;
    case Relation::Ne: {
      auto eq = decide(Relation::Eq, lhs, rhs, ranges);
      return eq ? std::optional(!*eq) : std::nullopt;
    }
    case Relation::Lt:
      if (known_nonnegative(d - 1, ranges)) return true;
      if (known_nonnegative(-d, ranges)) return false;
      return std::nullopt;
    default:
      if (known_nonnegative(d, ranges)) return true;
      if (known_nonnegative(-d - 1, ranges)) return false;
      return std::nullopt;
  }
}
}  // namespace

std::optional<bool> decide(Relation r, const Expr& lhs, const Expr& rhs, Ranges ranges) {
  if (lhs == rhs) return r == Relation::Eq || r == Relation::Le;
  if (!ranges.empty()) return decide_anew(r, lhs, rhs, ranges);
  // Shape rules ask the same few questions over and over.
  thread_local detail::PairMemo<std::optional<bool>> memo[4];
  return memo[static_cast<int>(r)].get(lhs, rhs, [&] { return decide_anew(r, lhs, rhs, {}); });
}

}  // namespace fl::sym
