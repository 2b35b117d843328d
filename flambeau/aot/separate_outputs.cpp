#include "flambeau/aot/separate_outputs.h"

#include <algorithm>

#include "flambeau/autograd/gradient_ops.h"
#include "flambeau/graph/infer.h"
#include "flambeau/op/op_def.h"

namespace fl::aot {

using graph::Graph;
using graph::Node;

namespace {

// The value whose memory a value is a view of.
GraphRef memory_of(const Graph& g, GraphRef r) {
  while (!g.node(r.node).is_input() && g.node(r.node).op->is_view()) r = g.node(r.node).args[0].graph_ref();
  return r;
}

bool same_strides(const Graph& g, const TensorSpec& a, const TensorSpec& b) {
  if (a.strides.size() != b.strides.size()) return false;
  for (size_t d = 0; d < a.strides.size(); ++d) {
    // The stride of a dimension of one element says nothing.
    if (a.sizes[d].same_as(1)) continue;
    if (!graph::same_number(g, a.strides[d], b.strides[d])) return false;
  }
  return true;
}

GraphRef append(Graph& g, const OpInfo& op, std::vector<Value> args) {
  while (static_cast<int>(args.size()) < op.arg_count())
    args.push_back(*op.schema.args[args.size()].default_value);
  std::vector<TensorSpec> specs = graph::infer_specs(g, op, args);
  return g.append(op, std::move(args), std::move(specs)).ref();
}

GraphRef with_strides(Graph& g, GraphRef r, const TensorSpec& wanted) {
  const GraphRef empty =
      append(g, gradient_ops::empty_strided.info(),
             {Value(wanted.sizes), Value(wanted.strides), Value(g.spec(r).dtype), Value(g.spec(r).device)});
  return append(g, gradient_ops::copy.info(), {Value(empty), Value(r)});
}

}  // namespace

void separate_outputs(Graph& g, const std::vector<int>& outputs,
                      const std::vector<const TensorSpec*>& wanted) {
  std::vector<Value> values = g.outputs();
  std::vector<GraphRef> taken;
  for (int i : outputs) {
    if (values[i].tag() != Value::Tag::GraphRef) continue;
    GraphRef r = values[i].graph_ref();
    const TensorSpec* spec = i < static_cast<int>(wanted.size()) ? wanted[i] : nullptr;
    if (spec && !same_strides(g, g.spec(r), *spec)) r = with_strides(g, r, *spec);
    GraphRef memory = memory_of(g, r);
    if (g.node(memory.node).is_input() || std::find(taken.begin(), taken.end(), memory) != taken.end())
      memory = r = append(g, gradient_ops::clone.info(), {Value(r)});
    taken.push_back(memory);
    values[i] = Value(r);
  }
  g.set_outputs(std::move(values));
}

}  // namespace fl::aot
