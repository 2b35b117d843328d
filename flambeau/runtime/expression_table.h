// Size expressions of a program, evaluated together from the values of its symbols.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "flambeau/sym/expr.h"

namespace fl::runtime {

/// Equal expressions share one entry; entries come after those that they use.
class ExpressionTable {
 public:
  /// Symbol number k has the k-th value of a call.
  explicit ExpressionTable(const std::vector<sym::Expr>& symbols);
  /// Entry number of an expression. Raises InternalError on a symbol that the table does not know.
  int add(const sym::Expr& e);
  int size() const { return static_cast<int>(entries_.size()); }
  /// Values of all entries, size() numbers.
  void evaluate(std::span<const int64_t> symbols, int64_t* values) const;
  void evaluate(std::span<const int64_t> symbols, std::vector<int64_t>& values) const;

 private:
  struct Entry {
    sym::Kind kind;
    int64_t value;  // Const: the value; Symbol: its number
    std::vector<int> args;
  };
  std::vector<Entry> entries_;
  std::unordered_map<sym::Expr, int> known_;
};

}  // namespace fl::runtime
