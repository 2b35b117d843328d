#include "flambeau/sym/shape_env.h"

#include "flambeau/sym/unbacked.h"

#include <algorithm>
#include <atomic>

#include "flambeau/base/error.h"

namespace fl::sym {
namespace {
thread_local ShapeEnv::Scope* g_innermost = nullptr;

bool holds(Relation r, int64_t a, int64_t b) {
  switch (r) {
    case Relation::Eq:
      return a == b;
    case Relation::Ne:
      return a != b;
    case Relation::Lt:
      return a < b;
    default:
      return a <= b;
  }
}

// In terms of == and <.
Guard as_fact(const Guard& g) {
  switch (g.relation) {
    case Relation::Ne:
      return {Relation::Eq, g.lhs, g.rhs, !g.expected};
    case Relation::Le:
      return {Relation::Lt, g.rhs, g.lhs, !g.expected};
    default:
      return g;
  }
}

/// e with each unbacked symbol as one of 2 or more.
Expr generic(const Expr& e) {
  return substitute(e, [](const Expr& s) -> std::optional<Expr> {
    if (!is_unbacked(s)) return std::nullopt;
    return Expr::symbol("many_" + s.name(), 2);
  });
}
}  // namespace

bool is_unbacked(const Expr& e) {
  if (!e.is_symbol()) return false;
  const std::string& name = e.name();
  return name.size() > 1 && name[0] == 'u' && name.find_first_not_of("0123456789", 1) == std::string::npos;
}

bool follows_from_elements(const Guard& g) {
  for (const Expr* side : {&g.lhs, &g.rhs})
    for (const Expr& s : symbols_of(*side))
      if (is_unbacked(s)) return true;
  return false;
}

bool holds(const Guard& g, int64_t lhs, int64_t rhs) { return holds(g.relation, lhs, rhs) == g.expected; }

std::string Guard::str() const {
  static constexpr const char* kSign[] = {"==", "!=", "<", "<="};
  std::string text = fmt::format("{} {} {}", lhs.str(), kSign[static_cast<int>(relation)], rhs.str());
  return expected ? text : "not (" + text + ")";
}

ShapeEnv* ShapeEnv::active() { return g_innermost ? g_innermost->env_ : nullptr; }
ShapeEnv::Scope::Scope(ShapeEnv* env) : env_(env), outer_(g_innermost) { g_innermost = this; }
ShapeEnv::Scope::~Scope() { g_innermost = outer_; }

bool ShapeEnv::is_entered(uint64_t id) {
  for (const Scope* s = g_innermost; s; s = s->outer_)
    if (s->env_ && s->env_->id_ == id) return true;
  return false;
}

uint64_t ShapeEnv::next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

Expr ShapeEnv::create_symbol(int64_t hint, int64_t lower) {
  FL_ASSERT(hint >= lower, "a size of {} is a constant", hint);
  const char* prefix = lower == 2 ? "s" : lower == 1 ? "t" : "n";  // a name has one lower bound
  Expr s = Expr::symbol(fmt::format("{}{}", prefix, symbols_++), lower);
  hints_[s] = hint;
  return s;
}

void ShapeEnv::declare(const Expr& symbol, int64_t hint) {
  hints_[symbol] = hint;
  const std::string& name = symbol.name();
  if (name.size() > 1 && name[0] == 's' && name.find_first_not_of("0123456789", 1) == std::string::npos)
    symbols_ = std::max(symbols_, std::stoi(name.substr(1)) + 1);
}

Expr ShapeEnv::create_unbacked() { return Expr::symbol(fmt::format("u{}", unbacked_++), 0); }

Expr ShapeEnv::create_opaque(std::string_view prefix) {
  return Expr::symbol(fmt::format("{}{}", prefix, opaque_++), 0);
}

Expr ShapeEnv::simplify(const Expr& e) const { return replace(e, Replace::All); }
Expr ShapeEnv::rename_symbols(const Expr& e) const { return replace(e, Replace::Symbols); }

Expr ShapeEnv::replace(const Expr& e, Replace what) const {
  if (replacements_.empty() || e.is_const()) return e;
  Expr now = e;
  for (;;) {  // Ends: a replacement never leads back to its symbol.
    Expr next = substitute(now, [&](const Expr& s) -> std::optional<Expr> {
      if (what == Replace::Symbols && !s.is_symbol()) return std::nullopt;
      if (what == Replace::Parts && s == e && !s.is_symbol()) return std::nullopt;
      auto it = replacements_.find(s);
      return it == replacements_.end() ? std::nullopt : std::optional(it->second);
    });
    if (next == now) return now;
    now = next;
  }
}

std::optional<int64_t> ShapeEnv::hint(const Expr& e) const {
  for (const Expr& s : symbols_of(e))
    if (!hints_.contains(s)) return std::nullopt;
  return sym::evaluate(e, [&](const Expr& s) { return hints_.at(s); });
}

bool ShapeEnv::evaluate(Relation r, const Expr& left, const Expr& right) {
  const Expr lhs = simplify(left), rhs = simplify(right);
  if (auto answer = known_of(r, lhs, rhs)) return *answer;
  auto a = hint(lhs), b = hint(rhs);
  // Where a size is not known, rules get the answer for sizes of 2 or more; a run checks that it is one.
  if (!a || !b)
    if (const auto answer = decide(r, generic(lhs), generic(rhs))) {
      for (const Expr* side : {&lhs, &rhs})
        for (const Expr& s : symbols_of(*side)) {
          if (!is_unbacked(s) || known_of(Relation::Le, Expr(2), s)) continue;
          guards_.push_back({Relation::Le, Expr(2), s, true});
          learn(guards_.back());
        }
      return *answer;
    }
  FL_CHECK(a && b, UnsupportedError,
           "the program branches on {} and {}, whose values are known only when it runs; a check on the "
           "sizes before this place, or a formulation without the branch, lets it be captured",
           lhs.str(), rhs.str());
  const bool answer = holds(r, *a, *b);
  guards_.push_back({r, lhs, rhs, answer});
  learn(guards_.back());
  return answer;
}

std::optional<bool> ShapeEnv::known(Relation r, const Expr& lhs, const Expr& rhs) const {
  return known_of(r, simplify(lhs), simplify(rhs));
}

std::optional<bool> ShapeEnv::known_of(Relation r, const Expr& lhs, const Expr& rhs) const {
  if (auto answer = decide(r, lhs, rhs)) return answer;
  const Guard wanted = as_fact({r, lhs, rhs, true});
  for (const Guard& f : facts_) {
    const bool turned = f.relation == Relation::Eq && f.lhs == wanted.rhs && f.rhs == wanted.lhs;
    if (f.relation == wanted.relation && (turned || (f.lhs == wanted.lhs && f.rhs == wanted.rhs)))
      return f.expected == wanted.expected;
  }
  return std::nullopt;
}

int64_t ShapeEnv::specialize(const Expr& e) {
  const Expr s = simplify(e);
  if (s.is_const()) return s.value();
  auto v = hint(s);
  FL_CHECK(v, UnsupportedError,
           "the value of {} is known only when the program runs, but is needed to capture it", s.str());
  evaluate(Relation::Eq, s, Expr(*v));
  return *v;
}

void ShapeEnv::learn(const Guard& guard) {
  facts_.push_back(as_fact(guard));
  learn_bound(facts_.back());
  if (facts_.back().relation != Relation::Eq || !facts_.back().expected) return;
  learn_equal(guard.lhs, guard.rhs);
  // What is known of other expressions may say more now: s0 - s0 % 5 == 5, once s0 % 5 is a number.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = 0; k < facts_.size(); ++k) {
      const Guard before = facts_[k];
      const Expr lhs = replace(before.lhs, Replace::Parts), rhs = replace(before.rhs, Replace::Parts);
      if (lhs == before.lhs && rhs == before.rhs) continue;
      const Guard now = facts_[k] = {before.relation, lhs, rhs, before.expected};
      learn_bound(now);
      if (now.relation != Relation::Eq || !now.expected || lhs == rhs) continue;
      learn_equal(lhs, rhs);
      changed = true;
    }
  }
}

// Strides are products of sizes, of which those of 0 count as 1: e for max(e, 1) where e is positive.
void ShapeEnv::learn_bound(const Guard& fact) {
  if (fact.relation != Relation::Lt || fact.expected || !fact.rhs.is_const() || fact.rhs.value() < 1) return;
  const Expr at_least_one = max(fact.lhs, Expr(1));
  if (at_least_one.kind() == Kind::Max) replacements_.insert_or_assign(at_least_one, fact.lhs);
}

namespace {

/// What d == 0 says of x, if it is linear in it and divides.
std::optional<Expr> solve(const Expr& d, const Expr& x) {
  const auto affine = affine_in(d, x);
  if (!affine || !affine->first.is_const()) return std::nullopt;
  const auto& [factor, rest] = *affine;
  if (factor.is_const(-1)) return rest;
  return exact_divide(-rest, factor);
}

/// The quotients, remainders, minima and maxima that are terms of a sum.
std::vector<Expr> atoms_of(const Expr& sum) {
  std::vector<Expr> out;
  const std::span<const Expr> whole(&sum, 1);
  for (const Expr& term : sum.kind() == Kind::Add ? sum.args() : whole) {
    const bool scaled = term.kind() == Kind::Mul && term.args().size() == 2 && term.args()[0].is_const();
    const Expr& atom = scaled ? term.args()[1] : term;
    if (atom.kind() >= Kind::FloorDiv) out.push_back(atom);
  }
  return out;
}

}  // namespace

// From a == b: the newest symbol that occurs alone and linearly is replaced; else a quotient or the like (x
// // 2 by x - 1, since x - x // 2 == 1 is seldom met as a whole); else what equals a constant.
void ShapeEnv::learn_equal(const Expr& a, const Expr& b) {
  const Expr d = a - b;
  const auto symbols = symbols_of(d);
  for (auto it = symbols.rbegin(); it != symbols.rend(); ++it) {
    if (!hints_.contains(*it)) continue;
    const std::optional<Expr> e = solve(d, *it);
    if (!e) continue;
    replacements_.insert_or_assign(*it, *e);
    if (it->lower() < 1) return;
    facts_.push_back({Relation::Lt, *e, Expr(1), false});
    return learn_bound(facts_.back());
  }
  for (const Expr& atom : atoms_of(d)) {
    const std::optional<Expr> e = solve(d, atom);
    if (!e) continue;
    replacements_.insert_or_assign(atom, *e);
    return;
  }
  if (a.is_const() == b.is_const()) return;
  Expr atom = a.is_const() ? b : a;
  int64_t value = a.is_const() ? a.value() : b.value();
  while ((atom.kind() == Kind::Add || atom.kind() == Kind::Mul) && atom.args().size() == 2 &&
         atom.args()[0].is_const()) {
    const int64_t c = atom.args()[0].value();
    if (atom.kind() == Kind::Mul && value % c != 0) return;
    value = atom.kind() == Kind::Add ? value - c : value / c;
    atom = Expr(atom.args()[1]);
  }
  replacements_.insert_or_assign(atom, Expr(value));
}

}  // namespace fl::sym
