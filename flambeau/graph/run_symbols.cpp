#include "flambeau/graph/run_symbols.h"

#include "flambeau/base/error.h"
#include "flambeau/op/op_def.h"
#include "flambeau/sym/unbacked.h"

namespace fl::graph {

bool gives_unknown_size(const Node& n) { return !n.is_input() && n.op->is(Tag::DataDependent); }

int64_t RunSymbols::evaluate(SymInt s) const {
  if (!s.is_symbolic()) return s.expect_int();
  return sym::evaluate(s.expr(), [&](const sym::Expr& e) {
    const auto found = sizes_.find(e.name());
    return found != sizes_.end() ? found->second : inputs_.evaluate(e);
  });
}

Value RunSymbols::evaluate(const Value& v) const {
  if (sizes_.empty()) return inputs_.evaluate(v);
  if (v.tag() == Value::Tag::Int) return Value(evaluate(v.sym_int()));
  if (v.tag() != Value::Tag::IntList) return v;
  Sizes list;
  for (SymInt i : v.ints()) list.push_back(evaluate(i));
  return Value(IntList(list));
}

void RunSymbols::learn(const Node& call, const Tensor& result) {
  for (int d = 0; d < result.dim(); ++d) {
    const SymInt expected = call.spec().sizes[d];
    if (expected.is_symbolic() && sym::is_unbacked(expected.expr()))
      sizes_.insert_or_assign(expected.expr().name(), result.sizes()[d].expect_int());
  }
  check_guards();
}

// What the capture took for granted of sizes that it did not know.
void RunSymbols::check_guards() const {
  if (!graph_.shape_env) return;
  for (const sym::Guard& g : graph_.shape_env->guards()) {
    bool asks = false, known = true;
    for (const sym::Expr* side : {&g.lhs, &g.rhs})
      for (const sym::Expr& s : sym::symbols_of(*side)) {
        if (!sym::is_unbacked(s)) continue;
        asks = true;
        known = known && sizes_.count(s.name()) > 0;
      }
    if (!asks || !known) continue;
    FL_CHECK(sym::holds(g, evaluate(SymInt(g.lhs)), evaluate(SymInt(g.rhs))), UnsupportedError,
             "a size that follows from elements does not satisfy {}", g.str());
  }
}

}  // namespace fl::graph
