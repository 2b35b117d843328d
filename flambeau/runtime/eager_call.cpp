#include "flambeau/runtime/eager_call.h"

#include "flambeau/graph/infer.h"
#include "flambeau/graph/pass/decompose.h"
#include "flambeau/graph/pass/eliminate_common_subexpressions.h"
#include "flambeau/graph/pass/eliminate_dead_code.h"
#include "flambeau/loop/lower_node.h"
#include "flambeau/op/dispatch.h"

namespace fl::runtime {
namespace {

bool holds(sym::Relation r, int64_t a, int64_t b) {
  switch (r) {
    case sym::Relation::Eq:
      return a == b;
    case sym::Relation::Ne:
      return a != b;
    case sym::Relation::Lt:
      return a < b;
    default:
      return a <= b;
  }
}

// Whether reductions of this call are cut into pieces follows from its sizes, not from the first call of its
// kind.
void note_split(const OpInfo& op, Device device, CallKind& call) {
  if (op.scalar) return;
  int64_t most = 0;
  for (const Tensor& t : call.tensors) most = std::max(most, t.numel().expect_int());
  if (most < 4096 && device.type == DeviceType::CPU) return;
  call.key += '|';
  for (const Tensor& t : call.tensors)
    for (SymInt d : t.sizes()) call.key += static_cast<char>('0' + loop::size_class(d.expect_int()));
}

graph::Graph make_graph(const OpInfo& op, const CallKind& call) {
  graph::Graph g;
  g.shape_env = std::make_shared<sym::ShapeEnv>();
  // The environment makes its own symbols; they are named in the same order.
  for (int64_t v : call.values) g.shape_env->create_symbol(v);
  sym::ShapeEnv::Scope scope(g.shape_env.get());
  std::vector<int32_t> ids;
  for (size_t k = 0; k < call.specs.size(); ++k)
    ids.push_back(g.add_input(graph::InputKind::Input, call.specs[k], fmt::format("arg{}", k)).id);
  for (const sym::Expr& s : call.number_symbols) g.add_symbol(graph::InputKind::Size, s);
  std::vector<Value> args;
  for (const Value& v : call.args)
    args.push_back(graph::map_refs(v, [&](GraphRef r) { return GraphRef{ids[r.node], 0}; }));
  std::vector<TensorSpec> outs = graph::infer_specs(g, op, args);
  for (size_t o = 0; o < call.target_layouts.size(); ++o) {
    const TensorSpec& t = call.target_layouts[o];
    outs[o].strides = t.strides;
    outs[o].dtype = t.dtype;
  }
  graph::Node& n = g.append(op, std::move(args), std::move(outs));
  std::vector<Value> outputs;
  for (size_t o = 0; o < n.outs.size(); ++o) outputs.emplace_back(n.ref(static_cast<int>(o)));
  g.set_outputs(std::move(outputs));
  if (!op.is_primitive()) {
    graph::decompose(g);
    graph::eliminate_common_subexpressions(g);
    graph::eliminate_dead_code(g);
  }
  return g;
}

}  // namespace

const EagerPrograms::Variant* EagerPrograms::find(const std::string& key, std::span<const int64_t> values) {
  auto it = variants_.find(key);
  if (it == variants_.end()) return nullptr;
  std::vector<int64_t> evaluated;
  for (const auto& v : it->second) {
    bool ok = true;
    if (!v->guards.empty()) {
      v->guard_table->evaluate(values, evaluated);
      for (size_t k = 0; ok && k < v->guards.size(); ++k)
        ok = holds(v->guards[k].relation, evaluated[v->guard_entries[k].first],
                   evaluated[v->guard_entries[k].second]) == v->guards[k].expected;
    }
    if (ok) return v.get();
  }
  return nullptr;
}

const EagerPrograms::Variant& EagerPrograms::compile(const OpInfo& op, const Value* args,
                                                     const CallKind& call) {
  infer_outputs(op, args);  // errors speak of the sizes as they are
  auto v = std::make_unique<Variant>();
  graph::Graph g = make_graph(op, call);
  sym::ShapeEnv::Scope scope(g.shape_env.get());
  v->executable = std::make_unique<Executable>(loop::lower(g, {.name = op.name()}));
  v->guards = g.shape_env->guards();
  v->guard_table = std::make_unique<ExpressionTable>(call.symbols);
  for (const sym::Guard& guard : v->guards)
    v->guard_entries.emplace_back(v->guard_table->add(guard.lhs), v->guard_table->add(guard.rhs));
  auto& list = variants_[call.key];
  list.push_back(std::move(v));
  return *list.back();
}

std::vector<Value> EagerPrograms::run(const OpInfo& op, const Value* args, Device device,
                                      std::span<const Tensor> targets) {
  CallKind call = classify(op, args, device, targets);
  note_split(op, device, call);
  const Variant* v;
  {
    std::lock_guard lock(mutex_);
    v = find(call.key, call.values);
    if (!v) v = &compile(op, args, call);
  }
  return v->executable->run(call.tensors, call.numbers, targets);
}

}  // namespace fl::runtime
