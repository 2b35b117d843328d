#include <algorithm>

#include "flambeau/base/error.h"
#include "flambeau/graph/pass/simplify_symbols.h"
#include "flambeau/trace/trace.h"

namespace fl::trace {
namespace {

/// Whether the rules agree with the graph where some of the symbols are 1.
bool is_right_where_ones(const TracedProgram& p, const std::vector<sym::Expr>& ones) {
  graph::Graph g = p.graph;
  g.shape_env = std::make_shared<sym::ShapeEnv>(*p.graph.shape_env);
  for (const sym::Expr& s : ones) {
    g.shape_env->declare(s, 1);
    if (!g.shape_env->evaluate(sym::Relation::Eq, s, sym::Expr(1))) return false;
  }
  try {
    graph::simplify_symbols(g);
    graph::verify(g);
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace

bool is_right_for_ones(const TracedProgram& p) {
  std::vector<sym::Expr> symbols;
  for (const InputInfo& in : p.inputs)
    for (SymInt s : in.spec.sizes)
      if (s.is_symbolic() && s.expr().is_symbol() && s.expr().lower() == 1 &&
          std::find(symbols.begin(), symbols.end(), s.expr()) == symbols.end())
        symbols.push_back(s.expr());
  constexpr size_t kMost = 3;
  if (symbols.size() > kMost) return false;
  for (unsigned which = 1; which < 1U << symbols.size(); ++which) {
    std::vector<sym::Expr> ones;
    for (size_t k = 0; k < symbols.size(); ++k)
      if (which >> k & 1) ones.push_back(symbols[k]);
    if (!is_right_where_ones(p, ones)) return false;
  }
  return true;
}

}  // namespace fl::trace
