#include "flambeau/runtime/expression_table.h"

#include <algorithm>

#include "flambeau/base/error.h"

namespace fl::runtime {

ExpressionTable::ExpressionTable(const std::vector<sym::Expr>& symbols) {
  for (size_t k = 0; k < symbols.size(); ++k) {
    known_.emplace(symbols[k], static_cast<int>(entries_.size()));
    entries_.push_back({sym::Kind::Symbol, static_cast<int64_t>(k), {}});
  }
}

int ExpressionTable::add(const sym::Expr& e) {
  if (auto it = known_.find(e); it != known_.end()) return it->second;
  FL_ASSERT(!e.is_symbol(), "the size {} of a program comes from no input", e.str());
  Entry entry{e.kind(), e.is_const() ? e.value() : 0, {}};
  if (!e.is_const())
    for (const sym::Expr& a : e.args()) entry.args.push_back(add(a));
  entries_.push_back(std::move(entry));
  const int id = static_cast<int>(entries_.size()) - 1;
  known_.emplace(e, id);
  return id;
}

void ExpressionTable::evaluate(std::span<const int64_t> symbols, std::vector<int64_t>& values) const {
  values.resize(entries_.size());
  evaluate(symbols, values.data());
}

void ExpressionTable::evaluate(std::span<const int64_t> symbols, int64_t* values) const {
  for (size_t k = 0; k < entries_.size(); ++k) {
    const Entry& e = entries_[k];
    int64_t& out = values[k];
    switch (e.kind) {
      case sym::Kind::Const:
        out = e.value;
        break;
      case sym::Kind::Symbol:
        out = symbols[static_cast<size_t>(e.value)];
        break;
      case sym::Kind::Add:
        out = 0;
        for (int a : e.args) out += values[a];
        break;
      case sym::Kind::Mul:
        out = 1;
        for (int a : e.args) out *= values[a];
        break;
      case sym::Kind::Min:
        out = std::min(values[e.args[0]], values[e.args[1]]);
        break;
      case sym::Kind::Max:
        out = std::max(values[e.args[0]], values[e.args[1]]);
        break;
      case sym::Kind::FloorDiv:
      case sym::Kind::Mod: {
        const int64_t a = values[e.args[0]], b = values[e.args[1]];
        FL_CHECK(b != 0, ValueError, "a size expression divides {} by zero", a);
        const int64_t q = a / b - (a % b != 0 && ((a < 0) != (b < 0)) ? 1 : 0);
        out = e.kind == sym::Kind::Mod ? a - q * b : q;
        break;
      }
    }
  }
}

}  // namespace fl::runtime
