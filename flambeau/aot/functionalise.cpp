#include "flambeau/aot/functionalise.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "flambeau/autograd/gradient_ops.h"
#include "flambeau/base/error.h"
#include "flambeau/graph/call_results.h"
#include "flambeau/graph/infer.h"
#include "flambeau/graph/tracer.h"
#include "flambeau/op/op.h"

namespace fl::aot {

using graph::Graph;
using graph::Node;

namespace {

/// Memory of the original graph.
struct Root {
  GraphRef current;  ///< the functional value of all of it
  int version = 0;   ///< changes so far
  int32_t input = -1;
};

/// A tensor of the original graph: a root, or a view of another tensor.
struct TensorValue {
  int root = -1;
  int parent = -1;  ///< -1: the root itself
  ViewStep step;    ///< from the parent
  TensorSpec spec;  ///< in the original graph
  GraphRef cached;  ///< its functional value at `version`
  int version = 0;
};

class Functionaliser {
 public:
  Functionaliser(Graph& g, size_t replayed) : g_(g), tracer_(g), replayed_(replayed) {}

  FunctionalInfo run() {
    sym::ShapeEnv::Scope scope(g_.shape_env ? g_.shape_env.get() : sym::ShapeEnv::active());
    for (int32_t id : g_.inputs())
      if (!g_.node(id).is_number()) add_root(g_.node(id).ref(), id);
    for (Node& n : g_.calls()) {
      position_ = n.id;
      if (n.op->mutates())
        replace_mutation(n);
      else
        visit(n);
    }
    position_ = -1;
    return finish();
  }

 private:
  static int64_t key(GraphRef r) {
    return (static_cast<int64_t>(r.node) << 32) | static_cast<uint32_t>(r.index);
  }
  int index_of(GraphRef r) const { return index_.at(key(r)); }

  int add_root(GraphRef r, int32_t input = -1) {
    roots_.push_back({r, 0, input});
    TensorValue v;
    v.root = static_cast<int>(roots_.size()) - 1;
    v.spec = g_.spec(r);
    v.cached = r;
    return add_value(r, std::move(v));
  }
  int add_value(GraphRef r, TensorValue v) {
    values_.push_back(std::move(v));
    index_[key(r)] = static_cast<int>(values_.size()) - 1;
    return static_cast<int>(values_.size()) - 1;
  }

  /// The functional value as it is now; a view is made again if its root changed since.
  GraphRef get(int value) {
    TensorValue& v = values_[value];
    const Root& root = roots_[v.root];
    if (v.version != root.version) {
      v.cached = v.parent < 0 ? root.current : apply(v.step, get(v.parent));
      v.version = root.version;
    }
    return v.cached;
  }
  Value functional(const Value& a) {
    return graph::map_refs(a, [&](GraphRef r) { return get(index_of(r)); });
  }

  GraphRef apply(const ViewStep& s, GraphRef base) {
    std::vector<Value> args = s.args;
    args[0] = Value(base);
    std::vector<TensorSpec> specs = graph::infer_specs(g_, *s.op, args);
    return g_.insert(position_, *s.op, std::move(args), std::move(specs)).ref(s.output);
  }

  void visit(Node& n) {
    const bool view = n.op->is_view();
    const int parent = view ? index_of(n.args[0].graph_ref()) : -1;
    ViewStep step{n.op, n.args, 0};
    std::vector<Value> args;
    bool changed = false;
    for (const Value& a : n.args) {
      args.push_back(functional(a));
      changed = changed || !args.back().same_as(a);
      graph::for_each_ref(args.back(), [&](GraphRef r) { changed = changed || moved_.contains(r.node); });
    }
    if (changed) {
      g_.set_args(n.id, std::move(args));
      std::vector<TensorSpec> specs = graph::infer_specs(g_, *n.op, n.args);
      for (size_t i = 0; i < specs.size(); ++i)
        if (!graph::same_spec(g_, specs[i], n.outs[i])) moved_.insert(n.id);
      n.outs = std::move(specs);
    }
    for (int i = 0; i < static_cast<int>(n.outs.size()); ++i) {
      if (!view) {
        add_root(n.ref(i));
        continue;
      }
      TensorValue v;
      v.root = values_[parent].root;
      v.parent = parent;
      v.step = step;
      v.step.output = i;
      v.step.args[0] = Value();
      v.spec = n.outs[i];
      v.cached = n.ref(i);
      v.version = roots_[v.root].version;
      add_value(n.ref(i), std::move(v));
    }
  }

  /// Runs f with its calls recorded in front of the node that is being looked at.
  template <class F>
  void record(F f) {
    tracer_.set_position(position_);
    StateGuard<Tracer*> tracing(&DispatchState::tracer, &tracer_);
    StateGuard<bool> below(&DispatchState::below_autograd, true);
    f();
  }
  Value traced(const Value& v) {
    if (v.tag() == Value::Tag::GraphRef) return Value(tracer_.tensor_for(v.graph_ref()));
    if (v.tag() != Value::Tag::GraphRefList) return v;
    std::vector<Tensor> list;
    for (GraphRef r : v.graph_refs()) list.push_back(r.node < 0 ? Tensor() : tracer_.tensor_for(r));
    return Value(std::move(list));
  }

  // op_(self, ...) and op.out(..., out): the functional operator, then its results take the targets' places.
  void replace_mutation(Node& n) {
    FL_CHECK(n.op->functional, NotImplementedError, "the mutating operator {} has no functional form",
             n.op->name());
    const OpInfo& f = *n.op->functional;
    std::vector<int> targets;
    for (size_t i = 0; i < n.args.size(); ++i)
      if (n.op->schema.args[i].mutated) targets.push_back(index_of(n.args[i].graph_ref()));
    std::vector<Value> args, outs(static_cast<size_t>(std::max(f.return_count(), 1)));
    for (int i = 0; i < f.arg_count(); ++i) args.push_back(traced(functional(n.args[i])));
    record([&] { dispatch(f, args.data(), outs.data()); });
    const std::vector<Tensor> results = graph::flat_results(f, outs.data());
    for (size_t i = 0; i < targets.size(); ++i) write(targets[i], results[i]);
    // The call's own results are its targets.
    for (size_t i = 0; i < n.outs.size(); ++i) index_[key(n.ref(static_cast<int>(i)))] = targets[i];
    dead_.push_back(n.id);
  }

  /// The target's new elements. A view's layout comes from its base.
  void write(int target, Tensor result) {
    const TensorSpec spec = values_[target].spec;
    const bool is_view = values_[target].parent >= 0;
    if (is_view ? !has_elements(result.spec(), spec) : !has_layout(result.spec(), spec))
      result = copied_into(target, result);
    const Tensor written = result;
    int at = target;
    while (values_[at].parent >= 0) {
      const TensorValue& v = values_[at];
      FL_CHECK(v.step.op->write_back && v.step.op->schema.returns[0].type == ArgType::Tensor,
               UnsupportedError, "the view {} has no rule that writes a change through it",
               v.step.op->name());
      // Of elements that share memory only one has changed; which one, the new values do not say.
      FL_CHECK(at == target || !may_share_elements(v.spec), UnsupportedError,
               "a part of {}'s result, whose elements share memory (sizes {}, strides {}), is changed in "
               "place; change what it is made of, or a clone",
               v.step.op->name(), to_string(v.spec.sizes), to_string(v.spec.strides));
      const Tensor base = tracer_.tensor_for(get(v.parent));
      std::vector<Value> args = v.step.args;
      args[0] = Value(base);
      record([&] { result = v.step.op->write_back(base, result, args.data()); });
      at = v.parent;
    }
    if (at != target && !has_layout(result.spec(), values_[at].spec)) result = copied_into(at, result);
    Root& root = roots_[values_[at].root];
    root.current = tracer_.ref_of(result);
    ++root.version;
    // Elsewhere the view is made from the base again, in its own layout.
    if (!has_layout(written.spec(), spec)) return;
    values_[target].cached = tracer_.ref_of(written);
    values_[target].version = root.version;
  }

  // Whether two places may be one element: each stride has to step over all of the smaller ones.
  static bool may_share_elements(const TensorSpec& s) {
    std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
    for (int d = 0; d < s.dim(); ++d) {
      if (s.sizes[d].same_as(1)) continue;
      if (s.strides[d].same_as(0)) return true;
      if (!s.strides[d].is_symbolic() && !s.sizes[d].is_symbolic())
        dims.emplace_back(s.strides[d].expect_int(), s.sizes[d].expect_int());
    }
    std::sort(dims.begin(), dims.end());
    int64_t reach = 0;
    for (const auto& [stride, size] : dims) {
      if (stride <= reach) return true;
      reach += stride * (size - 1);
    }
    return false;
  }

  bool has_elements(const TensorSpec& now, const TensorSpec& wanted) const {
    TensorSpec s = now;
    s.strides = wanted.strides;
    s.offset = wanted.offset;
    return graph::same_spec(g_, s, wanted);
  }
  bool has_layout(const TensorSpec& now, const TensorSpec& wanted) const {
    TensorSpec s = now;
    s.offset = wanted.offset;
    return graph::same_spec(g_, s, wanted);
  }

  // In the dtype and layout of a tensor of the original graph.
  Tensor copied_into(int target, const Tensor& source) {
    const Tensor old = tracer_.tensor_for(get(target));
    Tensor result;
    record([&] { result = gradient_ops::copy(old, source); });
    return result;
  }

  /// The steps from a root to one of its views.
  std::vector<ViewStep> steps_of(int value) const {
    std::vector<ViewStep> steps;
    for (int v = value; values_[v].parent >= 0; v = values_[v].parent) steps.push_back(values_[v].step);
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  FunctionalInfo finish();
  void add_mutations(FunctionalInfo& info, std::vector<Value>& outputs);
  void make_recipes(FunctionalInfo& info, std::vector<Value>& outputs);

  Graph& g_;
  graph::GraphTracer tracer_;
  int32_t position_ = -1;
  std::vector<Root> roots_;
  std::deque<TensorValue> values_;
  std::unordered_map<int64_t, int> index_;
  std::vector<int32_t> dead_;
  std::unordered_set<int32_t> moved_;  ///< calls whose results have another layout than in the original graph
  const size_t replayed_;
};

void Functionaliser::add_mutations(FunctionalInfo& info, std::vector<Value>& outputs) {
  for (const Root& r : roots_) {
    if (r.input < 0 || r.version == 0) continue;
    info.mutations.push_back({r.input, static_cast<int>(outputs.size())});
    outputs.push_back(Value(r.current));
  }
}

void Functionaliser::make_recipes(FunctionalInfo& info, std::vector<Value>& outputs) {
  const size_t count = std::min(info.outputs.size(), replayed_);
  for (size_t i = count; i < info.outputs.size(); ++i) outputs[i] = functional(outputs[i]);
  std::vector<int> value_of(count, -1);
  std::unordered_map<int, int> first_output;  // of each value
  std::unordered_map<int, int> uses;          // different outputs on each root
  std::unordered_map<int, int> base_output;   // the output that is the root itself
  for (size_t i = 0; i < count; ++i) {
    if (outputs[i].tag() != Value::Tag::GraphRef) continue;
    const int v = value_of[i] = index_of(outputs[i].graph_ref());
    if (first_output.emplace(v, static_cast<int>(i)).second) ++uses[values_[v].root];
    if (values_[v].parent < 0) base_output.emplace(values_[v].root, static_cast<int>(i));
  }
  for (size_t i = 0; i < count; ++i) {
    if (value_of[i] < 0) continue;
    const TensorValue& v = values_[value_of[i]];
    const Root& root = roots_[v.root];
    OutputRecipe& recipe = info.outputs[i];
    if (root.input >= 0) {
      recipe = {OutputRecipe::Kind::Input, root.input, -1, steps_of(value_of[i])};
      outputs[i] = Value();
      continue;
    }
    auto base = base_output.find(v.root);
    const int first = first_output.at(value_of[i]);
    if (uses[v.root] == 1 && first != static_cast<int>(i)) {
      recipe = {OutputRecipe::Kind::Output, -1, first, {}};
      outputs[i] = Value();
      continue;
    }
    if (uses[v.root] == 1 || (base != base_output.end() && base->second == static_cast<int>(i))) {
      outputs[i] = Value(get(value_of[i]));
      continue;
    }
    if (base == base_output.end()) {
      base = base_output.emplace(v.root, static_cast<int>(outputs.size())).first;
      outputs.push_back(Value(root.current));
    }
    recipe = {OutputRecipe::Kind::Output, -1, base->second, steps_of(value_of[i])};
    outputs[i] = Value();
  }
}

FunctionalInfo Functionaliser::finish() {
  FunctionalInfo info;
  std::vector<Value> outputs = g_.outputs();
  info.outputs.resize(outputs.size());
  add_mutations(info, outputs);
  make_recipes(info, outputs);
  g_.set_outputs(std::move(outputs));
  for (auto it = dead_.rbegin(); it != dead_.rend(); ++it) g_.erase(*it);
  return info;
}

}  // namespace

FunctionalInfo functionalise(Graph& g, size_t replayed) { return Functionaliser(g, replayed).run(); }

}  // namespace fl::aot
