// Graph: a traced program as a list of operator calls.
//
//   graph(%x: f32[s0, 4], %w: f32[4, 3] captured, %seed0: random):
//     %mm: f32[s0, 3] = mm(%x, %w)
//     %add: f32[s0, 3] = add.Tensor(%mm, 1, 1)
//     return %add, s0*3
//
// A node is an input or one call of an operator. It has a number of outputs, each a tensor; a call that
// returns a list of tensors has one output for each item. Arguments are the operator's, one Value for each
// argument of the schema, with GraphRef in the place of a tensor and GraphRefList in that of a list.
// Sizes and other integers may be expressions over symbols; a symbol gets its value from the sizes of the
// inputs or from an input of kind Size or Random.
#pragma once
#include <deque>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flambeau/op/value.h"
#include "flambeau/sym/shape_env.h"

namespace fl {
struct OpInfo;
}

namespace fl::graph {

enum class InputKind : uint8_t {
  Input,     ///< a tensor that the caller passes
  Captured,  ///< a parameter, buffer or constant that the program found
  Tangent,   ///< the gradient by an output of the forward graph
  Saved,     ///< a value of the forward graph that the backward graph reads
  Size,      ///< a number: the value of `symbol`
  Random,    ///< a number: a generator's seed or offset, the value of `symbol`
};
std::string_view name(InputKind k);

/// What the user asked of activation checkpointing.
enum class Recompute : uint8_t { Automatic, Always, Never };

struct Node {
  int32_t id = -1;               ///< stays as long as the node does
  const OpInfo* op = nullptr;    ///< null: an input
  std::vector<Value> args;       ///< change through Graph::set_args only
  std::vector<TensorSpec> outs;  ///< of an input of kind Size or Random: empty
  std::string name;              ///< "add", "add_1": one node has it
  InputKind kind = InputKind::Input;
  sym::Expr symbol;  ///< of an input of kind Size or Random
  Recompute recompute = Recompute::Automatic;
  mutable bool checked = false;  ///< its specs were verified for its arguments

  bool is_input() const { return op == nullptr; }
  bool is_number() const { return is_input() && (kind == InputKind::Size || kind == InputKind::Random); }
  const TensorSpec& spec(int output = 0) const { return outs[output]; }
  GraphRef ref(int output = 0) const { return {id, output}; }
};

/// A generator that the program draws from. Numbers come from (seed, offset + what was drawn before).
struct RandomState {
  Device device;
  sym::Expr seed_low, seed_high, offset;  ///< symbols of three inputs of kind Random
  SymInt increment = 0;                   ///< by how much a run moves the offset on
};

/// Values: copying a graph copies all of it. Node references stay valid while their node lives.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph& o);
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph o) noexcept;

  /// A tensor input, after the inputs that exist.
  Node& add_input(InputKind kind, TensorSpec spec, std::string_view name);
  /// A number as input; kind is Size or Random.
  Node& add_symbol(InputKind kind, const sym::Expr& symbol);
  /// A call at the end. `before`: in front of that node.
  Node& append(const OpInfo& op, std::vector<Value> args, std::vector<TensorSpec> outs);
  Node& insert(int32_t before, const OpInfo& op, std::vector<Value> args, std::vector<TensorSpec> outs);

  void set_args(int32_t id, std::vector<Value> args);
  /// Every use of a value, in calls and in the outputs, reads another one.
  void replace_uses(GraphRef from, GraphRef to);
  /// Removes a node (or an input) without uses; raises InternalError if it has some.
  void erase(int32_t id);
  /// Takes a name near the given one.
  void rename(int32_t id, std::string_view name);
  /// Reorders the calls; `order` has every call once. The caller keeps definitions before uses.
  void reorder(const std::vector<int32_t>& order);

  Node& node(int32_t id) { return *nodes_[id]; }
  const Node& node(int32_t id) const { return *nodes_[id]; }
  bool has_node(int32_t id) const { return id >= 0 && id < id_limit() && nodes_[id]; }
  int32_t id_limit() const { return static_cast<int32_t>(nodes_.size()); }  ///< ids are below
  const TensorSpec& spec(GraphRef r) const { return nodes_[r.node]->outs[r.index]; }
  /// Calls that use any output of the node, in no order, each once.
  const std::vector<int32_t>& users(int32_t id) const { return links_[id].users; }
  bool is_output(int32_t id) const;
  const Node* find(std::string_view name) const;  ///< null if there is none

  const std::vector<int32_t>& inputs() const { return inputs_; }
  int32_t call_count() const { return call_count_; }

  /// GraphRef: a tensor; Int: a number over the symbols; None: nothing (an undefined gradient).
  const std::vector<Value>& outputs() const { return outputs_; }
  void set_outputs(std::vector<Value> outputs) { outputs_ = std::move(outputs); }

  /// Calls in order: for (const Node& n : g.calls()). The body may insert nodes and erase the one it is at.
  template <class G, class N>
  class Calls {
   public:
    class Iterator {
     public:
      Iterator(G* g, int32_t id) : graph_(g), id_(id), next_(id < 0 ? -1 : g->links_[id].next) {}
      N& operator*() const { return *graph_->nodes_[id_]; }
      Iterator& operator++() {
        *this = Iterator(graph_, next_);
        return *this;
      }
      bool operator!=(const Iterator& o) const { return id_ != o.id_; }

     private:
      G* graph_;
      int32_t id_, next_;
    };
    explicit Calls(G* g) : graph_(g) {}
    Iterator begin() const { return {graph_, graph_->first_}; }
    Iterator end() const { return {graph_, -1}; }

   private:
    G* graph_;
  };
  Calls<Graph, Node> calls() { return Calls<Graph, Node>(this); }
  Calls<const Graph, const Node> calls() const { return Calls<const Graph, const Node>(this); }

  /// What the trace knows about the symbols; null where all sizes are numbers.
  std::shared_ptr<sym::ShapeEnv> shape_env;
  std::vector<RandomState> random;
  /// {output number, input number}: the output is the new content of the input, and the backend may write it
  /// there. It then gives the input itself as that output.
  std::vector<std::pair<int, int>> takes_place_of;

 private:
  struct Links {
    int32_t previous = -1, next = -1;
    std::vector<int32_t> users;
  };
  Node& make(std::string_view name);
  void link(int32_t id, int32_t before);
  void add_users(const Node& n);
  void remove_users(const Node& n);
  std::string free_name(std::string_view wanted);

  std::vector<std::unique_ptr<Node>> nodes_;  // by id; null where erased
  std::vector<Links> links_;
  std::vector<int32_t> inputs_;
  std::vector<Value> outputs_;
  std::unordered_map<std::string, int32_t> by_name_;
  std::unordered_map<std::string, int32_t> next_suffix_;
  int32_t first_ = -1, last_ = -1, call_count_ = 0;
};

/// Calls f(GraphRef) for every reference in an argument, in order; entries that stand for None are skipped.
template <class F>
void for_each_ref(const Value& v, F&& f) {
  if (v.tag() == Value::Tag::GraphRef) {
    f(v.graph_ref());
  } else if (v.tag() == Value::Tag::GraphRefList) {
    for (GraphRef r : v.graph_refs())
      if (r.node >= 0) f(r);
  }
}
/// The argument with every reference replaced by f(GraphRef).
template <class F>
Value map_refs(const Value& v, F&& f) {
  if (v.tag() == Value::Tag::GraphRef) return Value(f(v.graph_ref()));
  if (v.tag() != Value::Tag::GraphRefList) return v;
  std::vector<GraphRef> list = v.graph_refs();
  for (GraphRef& r : list)
    if (r.node >= 0) r = f(r);
  return Value(std::move(list));
}

/// The text above; parse_graph reads it back.
std::string to_text(const Graph& g);
/// Raises ValueError with the line.
Graph parse_graph(std::string_view text);

/// Raises InternalError that names the node: a use before its definition, an argument that does not fit the
/// schema, or specs that differ from those that the operator's rule gives.
void verify(const Graph& g);
/// The same, with the rules asked only for calls that are new or have new arguments since the last time.
void verify_changes(const Graph& g);

/// Values of the symbols of the inputs, from what the caller passed (a tensor for each tensor input, Int for
/// each number; None leaves it open). Tangents may be left out. Raises RuntimeError where a size differs from
/// what the graph was made for.
class SymbolValues {
 public:
  SymbolValues(const Graph& g, const std::vector<Value>& inputs);
  int64_t evaluate(const sym::Expr& e) const;
  SymInt evaluate(SymInt s) const { return s.is_symbolic() ? SymInt(evaluate(s.expr())) : s; }
  /// Numbers in the place of expressions.
  Value evaluate(const Value& v) const;
  TensorSpec evaluate(const TensorSpec& s) const;

 private:
  std::unordered_map<sym::Expr, int64_t> values_;
};

/// Runs the calls one after the other through dispatch below autograd. inputs: one for each input of the
/// graph.
/// record: results have a history for autograd, where inputs need gradients.
std::vector<Value> interpret(const Graph& g, const std::vector<Value>& inputs, bool record = false);

}  // namespace fl::graph
