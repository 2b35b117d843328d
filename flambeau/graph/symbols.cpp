#include "flambeau/base/error.h"
#include "flambeau/graph/graph.h"
#include "flambeau/graph/text.h"

namespace fl::graph {
namespace {

/// One equation: an expression of the graph and the number that the caller's tensor has there.
struct Equation {
  sym::Expr expr;
  int64_t value;
  const Node* input;
  int dim;  ///< of a size; -1: a stride or offset
};

}  // namespace

SymbolValues::SymbolValues(const Graph& g, const std::vector<Value>& inputs) {
  std::vector<int32_t> ids;
  for (int32_t id : g.inputs()) ids.push_back(id);
  if (inputs.size() < ids.size())
    std::erase_if(ids, [&](int32_t id) { return g.node(id).kind == InputKind::Tangent; });
  FL_CHECK(inputs.size() == ids.size(), ValueError, "the graph has {} inputs, got {}", ids.size(),
           inputs.size());
  std::vector<Equation> equations;
  auto add = [&](SymInt expected, SymInt actual, const Node& n, int dim) {
    if (!expected.is_symbolic() && dim < 0) return;
    const int64_t value = actual.guard_int();
    if (expected.is_symbolic() && expected.expr().is_symbol() && !values_.contains(expected.expr()))
      values_[expected.expr()] = value;
    else
      equations.push_back({expected.expr(), value, &n, dim});
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Node& n = g.node(ids[i]);
    if (n.is_number()) {
      if (inputs[i].is_none()) continue;
      values_[n.symbol] = inputs[i].to_int();
      continue;
    }
    const Tensor& t = inputs[i].tensor();
    FL_CHECK(t.defined() && t.dim() == n.spec().dim() && t.dtype() == n.spec().dtype, RuntimeError,
             "input '{}' is {} in the graph, got {}", n.name, to_text(n.spec()),
             t.defined() ? to_text(t.spec()) : "None");
    for (int d = 0; d < t.dim(); ++d) add(n.spec().sizes[d], t.sizes()[d], n, d);
    for (int d = 0; d < t.dim(); ++d) add(n.spec().strides[d], t.strides()[d], n, -1);
    add(n.spec().offset, t.offset(), n, -1);
  }
  // An equation with one unknown, in which it is affine, gives its value.
  bool progress = true;
  while (progress) {
    progress = false;
    for (const Equation& e : equations) {
      std::vector<sym::Expr> unknown;
      for (const sym::Expr& s : sym::symbols_of(e.expr))
        if (!values_.contains(s)) unknown.push_back(s);
      if (unknown.size() != 1) continue;
      auto affine = sym::affine_in(e.expr, unknown[0]);
      if (!affine) continue;
      const int64_t c = evaluate(affine->first), r = evaluate(affine->second);
      if (c == 0 || (e.value - r) % c != 0) continue;
      values_[unknown[0]] = (e.value - r) / c;
      progress = true;
    }
  }
  for (const Equation& e : equations) {
    if (e.dim < 0) continue;
    const int64_t expected = evaluate(e.expr);
    FL_CHECK(expected == e.value, RuntimeError,
             "input '{}' has size {} in dimension {}, the graph expects {}", e.input->name, e.value, e.dim,
             e.expr.is_const() ? std::to_string(expected) : fmt::format("{} = {}", e.expr.str(), expected));
  }
}

int64_t SymbolValues::evaluate(const sym::Expr& e) const {
  if (e.is_const()) return e.value();
  return sym::evaluate(e, [&](const sym::Expr& s) {
    auto it = values_.find(s);
    FL_CHECK(it != values_.end(), RuntimeError, "no input of the graph gives the value of {}", s.str());
    return it->second;
  });
}

Value SymbolValues::evaluate(const Value& v) const {
  if (v.tag() == Value::Tag::Int) return Value(evaluate(v.sym_int()));
  if (v.tag() != Value::Tag::IntList) return v;
  Sizes list;
  for (SymInt i : v.ints()) list.push_back(evaluate(i));
  return Value(IntList(list));
}

TensorSpec SymbolValues::evaluate(const TensorSpec& s) const {
  TensorSpec r = s;
  for (SymInt& i : r.sizes) i = evaluate(i);
  for (SymInt& i : r.strides) i = evaluate(i);
  r.offset = evaluate(r.offset);
  return r;
}

}  // namespace fl::graph
