#include "flambeau/graph/infer.h"

#include "flambeau/op/dispatch.h"
#include "flambeau/op/op_def.h"

namespace fl::graph {

Value fake_argument(const Graph& g, const Value& v) {
  auto fake = [&](GraphRef r) {
    if (r.node < 0) return Tensor();
    Tensor t = fake_tensor(g.spec(r));
    t.impl()->wrapped_number = g.spec(r).wrapped_number;
    return t;
  };
  if (v.tag() == Value::Tag::GraphRef) return Value(fake(v.graph_ref()));
  if (v.tag() != Value::Tag::GraphRefList) return v;
  std::vector<Tensor> list;
  for (GraphRef r : v.graph_refs()) list.push_back(fake(r));
  return Value(std::move(list));
}

namespace {

// What an operator writes keeps its shape and type.
std::vector<TensorSpec> mutated_specs(const Graph& g, const OpInfo& op, const std::vector<Value>& args) {
  std::vector<TensorSpec> specs;
  if (op.return_count() > 0)
    for (size_t i = 0; i < args.size(); ++i)
      if (op.schema.args[i].mutated) specs.push_back(g.spec(args[i].graph_ref()));
  return specs;
}

}  // namespace

std::vector<TensorSpec> infer_specs(const Graph& g, const OpInfo& op, const std::vector<Value>& args) {
  if (op.mutates()) return mutated_specs(g, op, args);
  std::vector<Value> fakes;
  fakes.reserve(args.size());
  for (const Value& a : args) fakes.push_back(fake_argument(g, a));
  sym::ShapeEnv::Scope scope(g.shape_env ? g.shape_env.get() : sym::ShapeEnv::active());
  return infer_outputs(op, fakes.data());
}

}  // namespace fl::graph
