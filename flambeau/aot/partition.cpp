#include "flambeau/aot/partition.h"

#include <algorithm>
#include <unordered_map>

#include "flambeau/aot/choose_saved.h"
#include "flambeau/base/error.h"
#include "flambeau/graph/infer.h"
#include "flambeau/graph/run_symbols.h"
#include "flambeau/op/op.h"

namespace fl::aot {

using graph::Graph;
using graph::InputKind;
using graph::Node;

namespace {

int64_t key(GraphRef r) { return (static_cast<int64_t>(r.node) << 32) | static_cast<uint32_t>(r.index); }

/// Copies calls of the joint graph into a new graph.
class Extract {
 public:
  Extract(const Graph& from, Graph& to) : from_(from), to_(to) { to_.shape_env = from.shape_env; }
  bool has(GraphRef r) const { return map_.contains(key(r)); }
  void set(GraphRef r, GraphRef now) { map_[key(r)] = now; }
  Value map(const Value& v) const {
    return graph::map_refs(v, [&](GraphRef r) { return map_.at(key(r)); });
  }
  void copy(const Node& n) {
    std::vector<Value> args;
    bool another_layout = false;
    for (const Value& a : n.args) {
      args.push_back(map(a));
      graph::for_each_ref(
          a, [&](GraphRef r) { another_layout |= !same_layout(from_.spec(r), to_.spec(map_.at(key(r)))); });
    }
    std::vector<TensorSpec> specs = another_layout ? relaid(n, args) : n.outs;
    Node& made = to_.append(*n.op, std::move(args), std::move(specs));
    if (made.name != n.name) to_.rename(made.id, n.name);
    for (int i = 0; i < static_cast<int>(n.outs.size()); ++i) set(n.ref(i), made.ref(i));
  }
  void copy_input(const Node& n) {
    if (n.is_number()) {
      to_.add_symbol(n.kind, n.symbol);
      return;
    }
    set(n.ref(), to_.add_input(n.kind, n.spec(), n.name).ref());
  }

 private:
  static bool same_layout(const TensorSpec& a, const TensorSpec& b) {
    return a.strides == b.strides && a.offset.same_as(b.offset);
  }

  /// What a call gives of arguments in another layout than in the joint graph.
  std::vector<TensorSpec> relaid(const Node& n, const std::vector<Value>& args) const {
    std::vector<TensorSpec> specs = graph::infer_specs(to_, *n.op, args);
    // A view that counts from the start of the memory would see other elements.
    FL_CHECK(!n.op->is_view() || specs[0].strides != n.outs[0].strides ||
                 !specs[0].offset.same_as(n.outs[0].offset) || n.outs[0].offset.same_as(0),
             UnsupportedError,
             "{} of an input that is changed in place reads memory by its position, and backward needs its "
             "elements from before the change",
             n.op->name());
    return specs;
  }

  const Graph& from_;
  Graph& to_;
  std::unordered_map<int64_t, GraphRef> map_;
};

class Partitioner {
 public:
  Partitioner(const JointProgram& joint, const PartitionOptions& options)
      : joint_(joint),
        g_(joint.program.graph),
        regions_(find_regions(joint)),
        saved_nodes_(choose_saved(joint, regions_, options)),
        forward_(g_, result_.forward),
        backward_(g_, result_.backward) {}

  Partition run() {
    find_saved_refs();
    make_backward();
    make_forward();
    return std::move(result_);
  }

 private:
  bool is_backward(int32_t id) const { return regions_.backward[id]; }

  // What backward calls, and forward calls that are repeated for them, read of saved nodes.
  void find_saved_refs() {
    repeated_.assign(static_cast<size_t>(g_.id_limit()), 0);
    std::vector<int32_t> calls;
    for (const Node& n : g_.calls()) calls.push_back(n.id);
    auto read = [&](GraphRef r) {
      if (is_backward(r.node)) return;
      if (!saved_nodes_[r.node] && !g_.node(r.node).is_input()) {
        repeated_[r.node] = 1;
      } else if (saved_set_.emplace(key(r), 0).second) {
        saved_.push_back(r);
      }
    };
    for (const Gradient& gr : joint_.gradients)
      if (gr.output >= 0) graph::for_each_ref(g_.outputs()[gr.output], read);
    for (auto it = calls.rbegin(); it != calls.rend(); ++it)
      if ((is_backward(*it) && regions_.needed[*it]) || repeated_[*it])
        for (const Value& a : g_.node(*it).args) graph::for_each_ref(a, read);
    std::sort(saved_.begin(), saved_.end(),
              [](GraphRef a, GraphRef b) { return std::pair(a.node, a.index) < std::pair(b.node, b.index); });
  }

  // A repeated call comes right before the first call that reads it, so that its result lives shortly.
  void emit_backward(const Node& n) {
    for (const Value& a : n.args)
      graph::for_each_ref(a, [&](GraphRef r) {
        if (!backward_.has(r)) emit_backward(g_.node(r.node));
      });
    backward_.copy(n);
  }

  void make_backward() {
    Graph& b = result_.backward;
    for (GraphRef r : saved_) {
      const Node& n = g_.node(r.node);
      const TensorSpec spec = changes_later(r) ? specs_of_copy(g_, Value(r))[0] : g_.spec(r);
      backward_.set(r, b.add_input(InputKind::Saved, spec, n.name).ref());
    }
    for (const Tangent& t : joint_.tangents) backward_.copy_input(g_.node(t.node));
    for (const Node& n : g_.calls())
      if (is_backward(n.id) && regions_.needed[n.id]) emit_backward(n);
    std::vector<Value> outputs;
    for (const Gradient& gr : joint_.gradients) {
      Value v = gr.output < 0 ? Value() : g_.outputs()[gr.output];
      graph::for_each_ref(v, [&](GraphRef r) {
        if (!backward_.has(r)) emit_backward(g_.node(r.node));
      });
      outputs.push_back(backward_.map(v));
    }
    b.set_outputs(std::move(outputs));
    add_numbers();
  }

  // Symbols of the backward graph become its inputs.
  void add_numbers() {
    Graph& b = result_.backward;
    std::vector<sym::Expr> symbols;
    auto add = [&](SymInt s) {
      if (!s.is_symbolic()) return;
      for (const sym::Expr& e : sym::symbols_of(s.expr()))
        if (std::find(symbols.begin(), symbols.end(), e) == symbols.end()) symbols.push_back(e);
    };
    auto add_spec = [&](const TensorSpec& s) {
      for (SymInt i : s.sizes) add(i);
      for (SymInt i : s.strides) add(i);
      add(s.offset);
    };
    for (int32_t id : b.inputs()) add_spec(b.node(id).spec());
    for (const Node& n : b.calls()) {
      for (const TensorSpec& s : n.outs) add_spec(s);
      for (const Value& a : n.args) {
        if (a.tag() == Value::Tag::Int) add(a.sym_int());
        if (a.tag() == Value::Tag::IntList)
          for (SymInt i : a.ints()) add(i);
      }
    }
    for (const sym::Expr& e : symbols) {
      const bool random = std::any_of(g_.random.begin(), g_.random.end(), [&](const graph::RandomState& r) {
        return e == r.seed_low || e == r.seed_high || e == r.offset;
      });
      b.add_symbol(random ? InputKind::Random : InputKind::Size, e);
      numbers_.push_back(e);
    }
    result_.saved_numbers = static_cast<int>(numbers_.size());
  }

  // Memory of a changed input: what backward is to read of it has to be copied before the change.
  bool changes_later(GraphRef r) const {
    for (;;) {
      const Node& n = g_.node(r.node);
      if (n.is_input())
        return std::any_of(joint_.info.mutations.begin(), joint_.info.mutations.end(),
                           [&](const Mutation& m) { return m.input == n.id; });
      if (!n.op->is_view()) return false;
      r = n.args[0].graph_ref();
    }
  }

  // The copy is dense where the original has gaps.
  static std::vector<TensorSpec> specs_of_copy(const Graph& g, const Value& v) {
    return graph::infer_specs(g, find_op("clone"), {v, Value()});
  }
  Value copied(const Value& v) {
    Graph& f = result_.forward;
    return Value(f.append(find_op("clone"), {v, Value()}, specs_of_copy(f, v)).ref());
  }

  void make_forward() {
    Graph& f = result_.forward;
    f.random = g_.random;
    for (int32_t id : g_.inputs())
      if (!is_backward(id)) forward_.copy_input(g_.node(id));
    std::vector<char> wanted = regions_.forward;
    for (GraphRef r : saved_) wanted[r.node] = 1;
    std::vector<int32_t> calls;
    for (const Node& n : g_.calls()) {
      calls.push_back(n.id);
      if (graph::gives_unknown_size(n) && !is_backward(n.id)) wanted[n.id] = 1;
    }
    for (auto it = calls.rbegin(); it != calls.rend(); ++it)
      if (wanted[*it])
        for (const Value& a : g_.node(*it).args)
          graph::for_each_ref(a, [&](GraphRef r) { wanted[r.node] = 1; });
    for (const Node& n : g_.calls())
      if (wanted[n.id] && !is_backward(n.id)) forward_.copy(n);

    std::vector<Value> outputs;
    for (int i : joint_.forward_outputs()) outputs.push_back(forward_.map(g_.outputs()[i]));
    result_.forward_outputs = static_cast<int>(outputs.size());
    for (GraphRef r : saved_) save(r, outputs);
    for (const sym::Expr& e : numbers_) outputs.push_back(Value(SymInt(e)));
    f.set_outputs(std::move(outputs));
  }

  void save(GraphRef r, std::vector<Value>& outputs) {
    const Value v = forward_.map(Value(r));
    const bool changes = changes_later(r);
    if (g_.node(r.node).is_input() && !changes) {
      result_.saved.push_back({-1, v.graph_ref().node});
      return;
    }
    result_.saved.push_back({static_cast<int>(outputs.size()), -1});
    outputs.push_back(changes ? copied(v) : v);
    const TensorSpec& s = g_.spec(r);
    const SymInt n = s.numel();
    const auto count = n.is_symbolic() ? (g_.shape_env ? g_.shape_env->hint(n.expr()) : std::nullopt)
                                       : std::optional<int64_t>(n.expect_int());
    result_.saved_bytes += count.value_or(0) * size_of(s.dtype);
  }

  const JointProgram& joint_;
  const Graph& g_;
  Partition result_;
  Regions regions_;
  std::vector<char> saved_nodes_, repeated_;
  std::unordered_map<int64_t, int> saved_set_;
  std::vector<GraphRef> saved_;
  std::vector<sym::Expr> numbers_;
  Extract forward_, backward_;
};

}  // namespace

Partition partition(const JointProgram& joint, const PartitionOptions& options) {
  return Partitioner(joint, options).run();
}

}  // namespace fl::aot
