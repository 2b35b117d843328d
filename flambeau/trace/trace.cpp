#include "flambeau/trace/trace.h"

#include <optional>

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

InputPlan::InputPlan(const TracedProgram& p) {
  std::unordered_map<int32_t, Source> known;
  for (size_t i = 0; i < p.inputs.size(); ++i)
    known.emplace(p.inputs[i].node, Source{Source::Kind::Argument, static_cast<int>(i)});
  for (size_t i = 0; i < p.captured.size(); ++i)
    known.emplace(p.captured[i].node, Source{Source::Kind::Captured, static_cast<int>(i)});
  for (size_t i = 0; i < p.bases.size(); ++i)
    known.emplace(p.bases[i].node, Source{Source::Kind::Base, static_cast<int>(i)});
  for (int32_t id : p.graph.inputs()) {
    const graph::Node& n = p.graph.node(id);
    if (n.kind == graph::InputKind::Tangent) continue;
    position_.emplace(id, static_cast<int>(sources_.size()));
    if (n.is_number()) {
      sources_.push_back(number_source(p, n.symbol));
      continue;
    }
    auto it = known.find(id);
    FL_CHECK(it != known.end(), InternalError, "nothing gives input '{}' of the graph", n.name);
    sources_.push_back(it->second);
  }
}

InputPlan::Source InputPlan::number_source(const TracedProgram& p, const sym::Expr& symbol) {
  for (size_t i = 0; i < p.graph.random.size(); ++i) {
    const graph::RandomState& r = p.graph.random[i];
    const int at = static_cast<int>(3 * i);
    if (symbol == r.seed_low) return {Source::Kind::Random, at};
    if (symbol == r.seed_high) return {Source::Kind::Random, at + 1};
    if (symbol == r.offset) return {Source::Kind::Random, at + 2};
  }
  FL_RAISE(InternalError, "nothing gives the number {} of the graph", symbol.str());
}

std::vector<Value> InputPlan::tensors(const TracedProgram& p, const Tensors& args) const {
  FL_CHECK(args.size() == p.inputs.size(), TypeError, "the captured function takes {} tensors, got {}",
           p.inputs.size(), args.size());
  std::vector<Value> values;
  values.reserve(sources_.size());
  for (const Source& s : sources_) switch (s.kind) {
      case Source::Kind::Argument:
        values.emplace_back(args[s.index]);
        break;
      case Source::Kind::Captured:
        values.emplace_back(p.outer(args, {Outer::Kind::Captured, s.index}));
        break;
      case Source::Kind::Base: {
        const SharedBase& b = p.bases[s.index];
        values.emplace_back(Tensor(b.spec, p.outer(args, b.member).storage()));
        break;
      }
      case Source::Kind::Random:
        values.emplace_back();
    }
  return values;
}

std::vector<Value> InputPlan::values(const TracedProgram& p, const Tensors& args) const {
  std::vector<Value> values = tensors(p, args);
  if (p.graph.random.empty()) return values;
  std::optional<graph::SymbolValues> symbols;
  for (size_t i = 0; i < p.graph.random.size(); ++i) {
    SymInt increment = p.graph.random[i].increment;
    if (increment.is_symbolic()) {
      if (!symbols) symbols.emplace(p.graph, values);
      increment = symbols->evaluate(increment);
    }
    const PhiloxSlot slot = p.generators[i]->take(increment.expect_int());
    const SymInt numbers[] = {slot.seed_low, slot.seed_high, slot.offset};
    for (size_t k = 0; k < sources_.size(); ++k)
      if (sources_[k].kind == Source::Kind::Random && sources_[k].index / 3 == static_cast<int>(i))
        values[k] = Value(numbers[sources_[k].index % 3]);
  }
  return values;
}

}  // namespace fl::trace
