#include "flambeau/graph/infer.h"

#include "flambeau/op/dispatch.h"
#include "flambeau/op/op_def.h"

namespace fl::graph {

Value fake_argument(const Graph& g, const Value& v) {
  auto fake = [&](GraphRef r) { return r.node < 0 ? Tensor() : fake_tensor(g.spec(r)); };
  if (v.tag() == Value::Tag::GraphRef) return Value(fake(v.graph_ref()));
  if (v.tag() != Value::Tag::GraphRefList) return v;
  std::vector<Tensor> list;
  for (GraphRef r : v.graph_refs()) list.push_back(fake(r));
  return Value(std::move(list));
}

std::vector<TensorSpec> infer_specs(const Graph& g, const OpInfo& op, const std::vector<Value>& args) {
  std::vector<Value> fakes;
  fakes.reserve(args.size());
  for (const Value& a : args) fakes.push_back(fake_argument(g, a));
  sym::ShapeEnv::Scope scope(g.shape_env ? g.shape_env.get() : sym::ShapeEnv::active());
  return infer_outputs(op, fakes.data());
}

}  // namespace fl::graph
