#include "flambeau/graph/pass/fold_identities.h"

#include "flambeau/graph/analysis/escape.h"
#include "flambeau/graph/analysis/purity.h"
#include "flambeau/graph/infer.h"
#include "flambeau/op/op_def.h"

namespace fl::graph {
namespace {

/// Runs a scalar body only to see whether it computes anything.
class Probe : public ScalarOps {
 public:
  bool computes = false;
  Val emit(ScalarOp op, DType dtype, Val a, Val, Val) override {
    return op == ScalarOp::Cast && dtype == a.dtype ? a : made();
  }
  Val constant(DType, Literal) override { return made(); }
  Val index(const sym::Expr&) override { return made(); }

 private:
  Val made() {
    computes = true;
    return Val{.id = kMade};
  }
  static constexpr int kMade = 1000;
};

// The only tensor argument; a node of -1 if there are others or none.
GraphRef only_tensor(const Node& n) {
  GraphRef found;
  int count = 0;
  for (const Value& a : n.args)
    for_each_ref(a, [&](GraphRef r) {
      found = r;
      ++count;
    });
  return count == 1 ? found : GraphRef{};
}

// An elementwise body of one operand that returns it.
bool returns_operand(const OpInfo& op, DType dtype) {
  if (!op.is(Tag::Elementwise) || !op.scalar || op.scalar.arity() != 1) return false;
  Probe probe;
  const Val operand{.id = 0, .dtype = dtype};
  const Val result = op.scalar(probe, &operand);
  return !probe.computes && result.id == operand.id;
}

}  // namespace

int fold_identities(Graph& g) {
  if (!is_functional(g)) return 0;
  const std::vector<char> escapes = escaping_nodes(g);
  int removed = 0;
  for (Node& n : g.calls()) {
    if (n.outs.size() != 1) continue;
    const GraphRef source = only_tensor(n);
    if (source.node < 0 || !same_spec(g, n.spec(), g.spec(source))) continue;
    const bool copy = returns_operand(*n.op, n.spec().dtype);
    const bool view = n.op->is_view() && n.args[0].tag() == Value::Tag::GraphRef;
    if (!copy && !view) continue;
    if (copy && escapes[n.id]) continue;
    g.replace_uses(n.ref(), source);
    g.erase(n.id);
    ++removed;
  }
  return removed;
}

}  // namespace fl::graph
