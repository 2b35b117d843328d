#include "flambeau/base/error.h"
#include "flambeau/graph/analysis/liveness.h"
#include "flambeau/graph/call_results.h"
#include "flambeau/graph/run_symbols.h"
#include "flambeau/op/autocast.h"
#include "flambeau/op/dispatch.h"
#include "flambeau/op/op_def.h"

namespace fl::graph {

std::vector<Tensor> flat_results(const OpInfo& op, const Value* outs) {
  std::vector<Tensor> flat;
  for (int i = 0; i < op.return_count(); ++i) {
    if (outs[i].tag() == Value::Tag::TensorList) {
      for (const Tensor& t : outs[i].tensors()) flat.push_back(t);
    } else {
      FL_CHECK(outs[i].is_tensor() || outs[i].is_none(), UnsupportedError,
               "{} returns a {}, which a graph cannot hold", op.name(), name(outs[i].tag()));
      flat.push_back(outs[i].tensor());
    }
  }
  return flat;
}

namespace {

using Values = std::vector<std::vector<Tensor>>;  // of each node

Value real_argument(const Value& v, const Values& values, const RunSymbols& symbols) {
  auto lookup = [&](GraphRef r) { return r.node < 0 ? Tensor() : values[r.node][r.index]; };
  if (v.tag() == Value::Tag::GraphRef) return Value(lookup(v.graph_ref()));
  if (v.tag() != Value::Tag::GraphRefList) return symbols.evaluate(v);
  std::vector<Tensor> list;
  for (GraphRef r : v.graph_refs()) list.push_back(lookup(r));
  return Value(std::move(list));
}

}  // namespace

std::vector<Value> interpret(const Graph& g, const std::vector<Value>& inputs, bool record) {
  const NoAutocast off;  // the graph has its casts
  RunSymbols symbols(g, inputs);
  const auto dead = dead_after(g);
  Values values(static_cast<size_t>(g.id_limit()));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!g.node(g.inputs()[i]).is_number()) values[g.inputs()[i]] = {inputs[i].tensor()};
  for (const Node& n : g.calls()) {
    std::vector<Value> args, outs(n.op->schema.returns.size() + 1);
    args.reserve(n.args.size() + 1);
    for (const Value& a : n.args) args.push_back(real_argument(a, values, symbols));
    (record ? dispatch : dispatch_below_autograd)(*n.op, args.data(), outs.data());
    values[n.id] = flat_results(*n.op, outs.data());
    if (gives_unknown_size(n)) symbols.learn(n, values[n.id][0]);
    for (size_t i = 0; i < n.outs.size(); ++i)
      if (n.outs[i].wrapped_number) values[n.id][i].impl()->wrapped_number = true;
    for (int32_t id : dead[n.id]) values[id].clear();
  }
  std::vector<Value> results;
  for (const Value& o : g.outputs()) results.push_back(real_argument(o, values, symbols));
  return results;
}

}  // namespace fl::graph
