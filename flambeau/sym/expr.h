// Integer expressions over symbols: tensor sizes, strides and loop indices.
//
// An Expr is a handle to an immutable node that exists once a process (equal expressions are the same node),
// kept in a normal form: a sum of products of atoms, so that affine index arithmetic cancels by itself.
// Atoms are symbols, floor divisions, modulos, minima and maxima. Values are mathematical integers; constants
// that leave int64 raise RuntimeError. floordiv rounds to minus infinity and mod takes the sign of the
// divisor, as Python.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fl::sym {

/// The lower bound of symbols that may have any sign: nothing is concluded from it.
inline constexpr int64_t kUnbounded = -(int64_t{1} << 40);

enum class Kind : uint8_t { Const, Symbol, Add, Mul, FloorDiv, Mod, Min, Max };

class Expr;

namespace detail {
struct Node;
}

class Expr {
 public:
  Expr() : Expr(int64_t{0}) {}
  Expr(int64_t value);
  Expr(int value) : Expr(static_cast<int64_t>(value)) {}
  explicit Expr(const detail::Node* node) : node_(node) {}

  /// The symbol of this name, with lower <= value. One name has one lower bound in a process.
  static Expr symbol(std::string_view name, int64_t lower = 0);

  Kind kind() const;
  bool is_const() const { return kind() == Kind::Const; }
  bool is_const(int64_t v) const { return is_const() && value() == v; }
  bool is_symbol() const { return kind() == Kind::Symbol; }
  int64_t value() const;            ///< Of a Const.
  const std::string& name() const;  ///< Of a Symbol.
  int64_t lower() const;            ///< Of a Symbol.
  std::span<const Expr> args()
      const;              ///< Operands of every other kind. An Add's or Mul's constant comes first.
  uint64_t hash() const;  ///< From the text alone: equal in every process.

  bool operator==(const Expr& o) const { return node_ == o.node_; }
  /// A total order by structure, the same in every process.
  static int compare(const Expr& a, const Expr& b);

  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator-(const Expr& a, const Expr& b);
  friend Expr operator*(const Expr& a, const Expr& b);
  Expr operator-() const;
  Expr& operator+=(const Expr& o) { return *this = *this + o; }
  Expr& operator-=(const Expr& o) { return *this = *this - o; }
  Expr& operator*=(const Expr& o) { return *this = *this * o; }

  /// Python's notation with floordiv as // and modulo as %; parse() reads it back.
  std::string str() const;
  const detail::Node* node() const { return node_; }

 private:
  const detail::Node* node_;
};

namespace detail {
struct Node {
  Kind kind;
  int64_t value = 0;  // Const: the value; Symbol: the lower bound.
  std::string name;
  std::vector<Expr> args;
  uint64_t hash = 0;
};
}  // namespace detail

/// 0 <= variable < size, for the variables of a loop nest.
struct Range {
  Expr variable, size;
};
using Ranges = std::span<const Range>;

/// Division rounded down; the divisor is a positive size wherever the library makes one. Constant zero raises
/// ValueError.
Expr floordiv(const Expr& a, const Expr& b, Ranges ranges = {});
Expr mod(const Expr& a, const Expr& b, Ranges ranges = {});
Expr ceildiv(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);

/// Rebuilds e, using the ranges of loop variables to drop modulos and divisions that do nothing.
Expr simplify(const Expr& e, Ranges ranges);
/// Replaces symbols (or whole atoms); names that map returns no value for stay.
Expr substitute(const Expr& e, const std::function<std::optional<Expr>(const Expr& symbol)>& map);
/// The value with each symbol's value from lookup. Raises ValueError on a zero divisor.
int64_t evaluate(const Expr& e, const std::function<int64_t(const Expr& symbol)>& lookup);
/// The symbols that occur, each once, in first-use order.
std::vector<Expr> symbols_of(const Expr& e);
bool depends_on(const Expr& e, const Expr& symbol);
/// {c, r} with e == c * variable + r and neither containing the variable; nothing if e is not affine in it.
std::optional<std::pair<Expr, Expr>> affine_in(const Expr& e, const Expr& variable);
/// e / divisor where the division is exact for every value of the symbols, found term by term.
std::optional<Expr> exact_divide(const Expr& e, const Expr& divisor);

/// True only if e >= 0 for all values of its symbols (their lower bounds, and the ranges, hold).
bool known_nonnegative(const Expr& e, Ranges ranges = {});

enum class Relation : uint8_t { Eq, Ne, Lt, Le };
/// lhs relation rhs where it is the same for all values, else nothing.
std::optional<bool> decide(Relation r, const Expr& lhs, const Expr& rhs, Ranges ranges = {});

/// Reads what str() prints. Unknown names become symbols with the given lower bound. Raises ValueError.
Expr parse(std::string_view text, int64_t lower = 0);

}  // namespace fl::sym

template <>
struct std::hash<fl::sym::Expr> {
  size_t operator()(const fl::sym::Expr& e) const { return e.hash(); }
};
