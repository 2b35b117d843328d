#include "flambeau/graph/pass/decompose.h"

#include <algorithm>

#include "flambeau/base/error.h"
#include "flambeau/graph/call_results.h"
#include "flambeau/graph/infer.h"
#include "flambeau/graph/tracer.h"

namespace fl::graph {
namespace {

bool stays(const OpInfo& op, std::span<const OpInfo* const> keep) {
  return op.is_primitive() || op.mutates() || std::find(keep.begin(), keep.end(), &op) != keep.end();
}

/// One call at a time is run with its arguments as traced tensors.
class Decomposer {
 public:
  explicit Decomposer(Graph& g) : graph_(g) {}

  void expand(Node& n) {
    FL_CHECK(n.op->decompose, NotImplementedError, "the operator {} is no primitive and has no decomposition",
             n.op->name());
    GraphTracer tracer(graph_);
    tracer.set_position(n.id);
    std::vector<Value> args, outs(static_cast<size_t>(std::max(n.op->return_count(), 1)));
    for (const Value& a : n.args) args.push_back(argument(tracer, a));
    {
      StateGuard<Tracer*> tracing(&DispatchState::tracer, &tracer);
      StateGuard<bool> below(&DispatchState::below_autograd, true);
      n.op->decompose(args.data(), outs.data());
    }
    const std::vector<Tensor> results = flat_results(*n.op, outs.data());
    FL_ASSERT(results.size() == n.outs.size(), "{}: {} results of its decomposition, {} by its rule",
              n.op->name(), results.size(), n.outs.size());
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].defined()) replace(n, static_cast<int>(i), tracer, results[i]);
  }

  bool specs_changed() const { return specs_changed_; }

 private:
  static Value argument(GraphTracer& tracer, const Value& v) {
    if (v.tag() == Value::Tag::GraphRef) return Value(tracer.tensor_for(v.graph_ref()));
    if (v.tag() != Value::Tag::GraphRefList) return v;
    std::vector<Tensor> list;
    for (GraphRef r : v.graph_refs()) list.push_back(r.node < 0 ? Tensor() : tracer.tensor_for(r));
    return Value(std::move(list));
  }

  void replace(const Node& n, int index, GraphTracer& tracer, const Tensor& result) {
    const GraphRef r = tracer.ref_of(result);
    const TensorSpec &now = graph_.spec(r), &before = n.outs[index];
    FL_ASSERT(now.dtype == before.dtype && now.sizes.size() == before.sizes.size(),
              "{}: the decomposition gives {} of {} dimensions, the rule {} of {}", n.op->name(),
              name(now.dtype), now.dim(), name(before.dtype), before.dim());
    specs_changed_ = specs_changed_ || !same_spec(graph_, now, before);
    graph_.replace_uses(n.ref(index), r);
  }

  Graph& graph_;
  bool specs_changed_ = false;
};

}  // namespace

int decompose(Graph& g, std::span<const OpInfo* const> keep) {
  sym::ShapeEnv::Scope scope(g.shape_env ? g.shape_env.get() : sym::ShapeEnv::active());
  Decomposer decomposer(g);
  int replaced = 0;
  // The calls of a decomposition may be no primitives themselves, so they are looked at in the next round.
  for (bool again = true; again;) {
    again = false;
    for (Node& n : g.calls()) {
      if (stays(*n.op, keep)) continue;
      decomposer.expand(n);
      g.erase(n.id);
      ++replaced;
      again = true;
    }
  }
  if (decomposer.specs_changed()) refresh_specs(g);
  return replaced;
}

void refresh_specs(Graph& g) {
  for (Node& n : g.calls()) n.outs = infer_specs(g, *n.op, n.args);
}

}  // namespace fl::graph
