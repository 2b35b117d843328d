#include "flambeau/graph/pass/simplify_symbols.h"

namespace fl::graph {
namespace {

SymInt simplified(const sym::ShapeEnv& env, SymInt s) {
  return s.is_symbolic() ? SymInt(env.simplify(s.expr())) : s;
}

}  // namespace

TensorSpec simplified(const sym::ShapeEnv& env, const TensorSpec& s) {
  TensorSpec r = s;
  for (SymInt& i : r.sizes) i = simplified(env, i);
  for (SymInt& i : r.strides) i = simplified(env, i);
  r.offset = simplified(env, r.offset);
  return r;
}

Value simplified(const sym::ShapeEnv& env, const Value& v) {
  if (v.tag() == Value::Tag::Int) return Value(simplified(env, v.sym_int()));
  if (v.tag() != Value::Tag::IntList) return v;
  Sizes list;
  for (SymInt i : v.ints()) list.push_back(simplified(env, i));
  return Value(IntList(list));
}

void simplify_symbols(Graph& g) {
  if (!g.shape_env) return;
  const sym::ShapeEnv& env = *g.shape_env;
  auto simplify_outputs = [&](Node& n) {
    for (TensorSpec& s : n.outs) s = simplified(env, s);
  };
  for (int32_t id : g.inputs()) simplify_outputs(g.node(id));
  for (Node& n : g.calls()) {
    simplify_outputs(n);
    for (Value& a : n.args) a = simplified(env, a);  // references stay as they are
  }
  std::vector<Value> outputs = g.outputs();
  for (Value& o : outputs) o = simplified(env, o);
  g.set_outputs(std::move(outputs));
  for (RandomState& r : g.random) r.increment = simplified(env, r.increment);
}

}  // namespace fl::graph
