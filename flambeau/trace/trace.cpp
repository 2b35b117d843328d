#include "flambeau/trace/trace.h"

#include "flambeau/base/error.h"
#include "flambeau/trace/session.h"

namespace fl::trace {

TracedProgram trace(const Callable& function, const Tensors& inputs, const TraceOptions& options) {
  Session session(inputs, options);
  Tensors outputs;
  session.run([&] { outputs = function(session.inputs()); });
  return session.finish(outputs);
}

Tensor TracedProgram::outer(const Tensors& args, Outer o) const {
  switch (o.kind) {
    case Outer::Kind::Input:
      return args[o.index];
    case Outer::Kind::Captured: {
      const CapturedInfo& c = captured[o.index];
      return c.grad_of ? outer(args, c.grad_of).grad() : c.tensor;
    }
    default:
      return {};
  }
}

namespace {

// Seeds and offsets, in the place of the inputs that are still open.
void draw(const TracedProgram& p, std::vector<Value>& values) {
  if (p.graph.random.empty()) return;
  const graph::SymbolValues symbols(p.graph, values);
  auto set = [&](const sym::Expr& symbol, SymInt number) {
    size_t at = 0;
    for (int32_t id : p.graph.inputs()) {
      const graph::Node& n = p.graph.node(id);
      if (n.kind == graph::InputKind::Tangent) continue;
      if (n.is_number() && n.symbol == symbol) values[at] = Value(number);
      ++at;
    }
  };
  for (size_t i = 0; i < p.graph.random.size(); ++i) {
    const graph::RandomState& r = p.graph.random[i];
    const PhiloxSlot slot = p.generators[i]->take(symbols.evaluate(r.increment.expr()));
    set(r.seed_low, slot.seed_low);
    set(r.seed_high, slot.seed_high);
    set(r.offset, slot.offset);
  }
}

}  // namespace

std::vector<Value> tensor_inputs(const TracedProgram& p, const Tensors& args) {
  FL_CHECK(args.size() == p.inputs.size(), TypeError, "the traced function takes {} tensors, got {}",
           p.inputs.size(), args.size());
  std::unordered_map<int32_t, Tensor> tensors;
  for (size_t i = 0; i < args.size(); ++i) tensors.emplace(p.inputs[i].node, args[i]);
  for (size_t i = 0; i < p.captured.size(); ++i)
    if (p.captured[i].node >= 0)
      tensors.emplace(p.captured[i].node, p.outer(args, {Outer::Kind::Captured, static_cast<int>(i)}));
  for (const SharedBase& b : p.bases)
    tensors.insert_or_assign(b.node, Tensor(b.spec, p.outer(args, b.member).storage()));
  std::vector<Value> values;
  for (int32_t id : p.graph.inputs()) {
    if (p.graph.node(id).kind == graph::InputKind::Tangent) continue;
    if (p.graph.node(id).is_number()) {
      values.emplace_back();
      continue;
    }
    auto it = tensors.find(id);
    FL_CHECK(it != tensors.end(), InternalError, "nothing gives input '{}' of the graph",
             p.graph.node(id).name);
    values.push_back(Value(it->second));
  }
  return values;
}

std::vector<Value> graph_inputs(const TracedProgram& p, const Tensors& args) {
  std::vector<Value> values = tensor_inputs(p, args);
  draw(p, values);
  return values;
}

}  // namespace fl::trace
