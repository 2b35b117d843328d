// What one trace knows about its symbolic sizes: example values, guards, equalities.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "flambeau/sym/sym_int.h"

namespace fl::sym {

/// lhs relation rhs, that a call has to satisfy for the traced graph to be right.
struct Guard {
  Relation relation;
  Expr lhs, rhs;
  bool expected = true;
  std::string str() const;
};

class ShapeEnv {
 public:
  /// A new symbol s0, s1, ... with an example value. Sizes of 0 and 1 are no symbols: rules tell empty and
  /// broadcast dimensions by that. Another lower bound is for numbers that are no sizes yet.
  Expr create_symbol(int64_t hint, int64_t lower = 2);
  /// A new symbol u0, u1, ... >= 0 whose value is known only when the program runs. Branching on it raises.
  Expr create_unbacked();
  /// A new symbol >= 0 whose value is given at each call but that no guard may mention (a random offset,
  /// say).
  Expr create_opaque(std::string_view prefix);

  /// Takes over a symbol of a text with its example value; later symbols get other names.
  void declare(const Expr& symbol, int64_t hint);

  bool evaluate(Relation r, const Expr& lhs, const Expr& rhs);
  /// The answer where it is the same for all sizes that the guards let pass, as far as it is seen; else
  /// nothing.
  std::optional<bool> known(Relation r, const Expr& lhs, const Expr& rhs) const;
  /// The value for the examples, recorded as a guard.
  int64_t specialize(const Expr& e);
  /// The value for the examples, without a guard; nothing if it depends on an unbacked symbol.
  std::optional<int64_t> hint(const Expr& e) const;
  /// e with equalities that guards established put in.
  Expr simplify(const Expr& e) const;
  /// e with the symbols replaced that guards found equal to other sizes: what a call is checked by. What they
  /// found of larger expressions (s0 % 2 == 0, say) has to stay in there.
  Expr rename_symbols(const Expr& e) const;
  const std::vector<Guard>& guards() const { return guards_; }

  /// No two environments of a process have the same, not even one after the other.
  uint64_t id() const { return id_; }

  /// The environment of the trace that runs on this thread; null outside.
  static ShapeEnv* active();
  /// Whether a trace of the environment with this id runs on this thread, maybe around the active one.
  static bool is_entered(uint64_t id);
  /// Makes an environment active for a scope.
  class Scope {
   public:
    explicit Scope(ShapeEnv* env);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    friend class ShapeEnv;
    ShapeEnv* env_;
    Scope* outer_;
  };

 private:
  static uint64_t next_id();
  enum class Replace : uint8_t { All, Symbols, Parts };  ///< Parts: not e as a whole
  Expr replace(const Expr& e, Replace what) const;
  std::optional<bool> known_of(Relation r, const Expr& lhs, const Expr& rhs) const;  ///< of simplified ones
  void learn(const Guard& guard);
  void learn_equal(const Expr& a, const Expr& b);
  void learn_bound(const Guard& fact);
  std::unordered_map<Expr, int64_t> hints_;
  std::unordered_map<Expr, Expr> replacements_;
  std::vector<Guard> guards_;
  std::vector<Guard> facts_;  ///< the guards as == and < of simplified expressions
  int symbols_ = 0, unbacked_ = 0, opaque_ = 0;
  uint64_t id_ = next_id();
};

}  // namespace fl::sym
