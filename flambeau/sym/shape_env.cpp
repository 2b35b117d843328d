#include "flambeau/sym/shape_env.h"

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
}  // namespace

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

Expr ShapeEnv::create_symbol(int64_t hint) {
  FL_ASSERT(hint >= 2, "a size of {} is a constant", hint);
  Expr s = Expr::symbol(fmt::format("s{}", symbols_++), 2);
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

Expr ShapeEnv::simplify(const Expr& e) const { return replace(e, false); }
Expr ShapeEnv::rename_symbols(const Expr& e) const { return replace(e, true); }

Expr ShapeEnv::replace(const Expr& e, bool symbols_only) const {
  if (replacements_.empty() || e.is_const()) return e;
  Expr now = e;
  for (;;) {  // Ends: a replacement never leads back to its symbol.
    Expr next = substitute(now, [&](const Expr& s) -> std::optional<Expr> {
      if (symbols_only && !s.is_symbol()) return std::nullopt;
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
  if (auto known = decide(r, lhs, rhs)) return *known;
  for (const Guard& g : guards_)
    if (g.relation == r && g.lhs == lhs && g.rhs == rhs) return g.expected;
  auto a = hint(lhs), b = hint(rhs);
  FL_CHECK(a && b, UnsupportedError,
           "the program branches on {} and {}, whose values are known only when it runs; a check on the "
           "sizes before "
           "this place, or a formulation without the branch, lets it be captured",
           lhs.str(), rhs.str());
  const bool answer = holds(r, *a, *b);
  guards_.push_back({r, lhs, rhs, answer});
  if ((r == Relation::Eq && answer) || (r == Relation::Ne && !answer)) learn_equal(lhs, rhs);
  return answer;
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

// From a == b: the newest symbol that occurs alone and linearly is replaced; else what equals a constant.
void ShapeEnv::learn_equal(const Expr& a, const Expr& b) {
  const Expr d = a - b;
  auto symbols = symbols_of(d);
  for (auto it = symbols.rbegin(); it != symbols.rend(); ++it) {
    if (!hints_.contains(*it)) continue;
    auto affine = affine_in(d, *it);
    if (!affine) continue;
    if (affine->first.is_const(1)) {
      replacements_.insert_or_assign(*it, -affine->second);
      return;
    }
    if (affine->first.is_const(-1)) {
      replacements_.insert_or_assign(*it, affine->second);
      return;
    }
    if (affine->first.is_const()) {
      if (auto q = exact_divide(-affine->second, affine->first)) {
        replacements_.insert_or_assign(*it, *q);
        return;
      }
    }
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
