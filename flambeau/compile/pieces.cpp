#include "flambeau/compile/pieces.h"

#include <algorithm>
#include <map>

#include "flambeau/base/error.h"
#include "flambeau/graph/run_symbols.h"
#include "flambeau/op/dispatch.h"
#include "flambeau/op/op.h"

namespace fl {
namespace {

using graph::Graph;
using graph::Node;

using Key = std::pair<int32_t, int32_t>;
Key key(GraphRef r) { return {r.node, r.index}; }

using graph::gives_unknown_size;

/// A part of the graph, as one of its own.
struct Piece {
  GraphRunner run;
  std::vector<Key> inputs;         ///< values of the whole graph
  std::vector<sym::Expr> numbers;  ///< inputs after these
  std::vector<Key> outputs;
  std::vector<TensorSpec> specs;  ///< of the outputs, in the whole graph
};

/// One after the other: a piece, then the call whose result has a new size.
struct Stage {
  Piece piece;
  const Node* call = nullptr;  ///< null: the last stage
};

class Splitter {
 public:
  Splitter(const Graph& g, const std::function<GraphRunner(const Graph&)>& compile)
      : g_(g), compile_(compile) {}

  std::vector<Stage> split() {
    stage_of_.assign(static_cast<size_t>(g_.id_limit()), -1);
    std::vector<const Node*> calls;
    for (const Node& n : g_.calls())
      if (gives_unknown_size(n)) calls.push_back(&n);
    for (size_t k = 0; k < calls.size(); ++k) assign(*calls[k], static_cast<int>(k));
    const int last = static_cast<int>(calls.size());
    for (const Node& n : g_.calls())
      if (stage_of_[n.id] < 0) stage_of_[n.id] = last;
    std::vector<Stage> stages;
    for (int k = 0; k <= last; ++k) stages.push_back({make(k), k < last ? calls[k] : nullptr});
    return stages;
  }

 private:
  // What the call reads has to be there before it: what it needs goes into its stage.
  void assign(const Node& call, int stage) {
    stage_of_[call.id] = stage;
    std::vector<int32_t> open{call.id};
    while (!open.empty()) {
      const Node& n = g_.node(open.back());
      open.pop_back();
      for (const Value& a : n.args)
        graph::for_each_ref(a, [&](GraphRef r) {
          if (g_.node(r.node).is_input() || stage_of_[r.node] >= 0) return;
          stage_of_[r.node] = stage;
          open.push_back(r.node);
        });
    }
  }

  // Whether a value that a piece makes is read behind it.
  bool is_read_later(const Node& n, int index, int stage) const {
    const auto reads = [&](const Value& v) {
      bool found = false;
      graph::for_each_ref(v, [&](GraphRef r) { found = found || (r.node == n.id && r.index == index); });
      return found;
    };
    for (int32_t id : g_.users(n.id)) {
      const Node& user = g_.node(id);
      if ((stage_of_[id] > stage || gives_unknown_size(user)) &&
          std::any_of(user.args.begin(), user.args.end(), reads))
        return true;
    }
    return std::any_of(g_.outputs().begin(), g_.outputs().end(), reads);
  }

  Piece make(int stage) {
    Piece piece;
    Graph part;
    part.shape_env = g_.shape_env;
    std::map<Key, GraphRef> known;
    const auto mine = [&](const Node& n) { return stage_of_[n.id] == stage && !gives_unknown_size(n); };
    for (const Node& n : g_.calls()) {
      if (!mine(n)) continue;
      for (const Value& a : n.args)
        graph::for_each_ref(a, [&](GraphRef r) {
          const Node& from = g_.node(r.node);
          if (known.count(key(r)) || mine(from)) return;
          TensorSpec spec = g_.spec(r);
          if (!from.is_input()) spec.offset = 0;
          known.emplace(key(r), part.add_input(graph::InputKind::Input, std::move(spec), from.name).ref());
          piece.inputs.push_back(key(r));
        });
    }
    for (const Node& n : g_.calls()) {
      if (!mine(n)) continue;
      std::vector<Value> args;
      for (const Value& a : n.args)
        args.push_back(graph::map_refs(a, [&](GraphRef r) { return known.at(key(r)); }));
      const Node& made = part.append(*n.op, std::move(args), n.outs);
      for (int i = 0; i < static_cast<int>(n.outs.size()); ++i) known.emplace(Key{n.id, i}, made.ref(i));
    }
    std::vector<Value> outputs;
    for (const Node& n : g_.calls())
      for (int i = 0; mine(n) && i < static_cast<int>(n.outs.size()); ++i)
        if (is_read_later(n, i, stage)) {
          outputs.emplace_back(known.at({n.id, i}));
          piece.outputs.push_back({n.id, i});
          piece.specs.push_back(n.outs[i]);
        }
    part.set_outputs(std::move(outputs));
    add_numbers(part, piece);
    if (!piece.outputs.empty()) piece.run = compile_(part);
    return piece;
  }

  // Symbols become inputs.
  static void add_numbers(Graph& part, Piece& piece) {
    const auto add = [&](SymInt s) {
      if (!s.is_symbolic()) return;
      for (const sym::Expr& e : sym::symbols_of(s.expr()))
        if (std::find(piece.numbers.begin(), piece.numbers.end(), e) == piece.numbers.end())
          piece.numbers.push_back(e);
    };
    const auto add_spec = [&](const TensorSpec& s) {
      for (SymInt i : s.sizes) add(i);
      for (SymInt i : s.strides) add(i);
      add(s.offset);
    };
    for (int32_t id : part.inputs()) add_spec(part.node(id).spec());
    for (const Node& n : part.calls()) {
      for (const TensorSpec& s : n.outs) add_spec(s);
      for (const Value& a : n.args) {
        if (a.tag() == Value::Tag::Int) add(a.sym_int());
        if (a.tag() == Value::Tag::IntList)
          for (SymInt i : a.ints()) add(i);
      }
    }
    for (const sym::Expr& e : piece.numbers) part.add_symbol(graph::InputKind::Size, e);
  }

  const Graph& g_;
  const std::function<GraphRunner(const Graph&)>& compile_;
  std::vector<int> stage_of_;  // by node
};

/// The pieces with the graph that their keys speak of.
struct Pieces {
  Graph graph;
  std::vector<Stage> stages;
};

/// One run.
class Run {
 public:
  Run(const Pieces& p, const std::vector<Value>& inputs) : p_(p), symbols_(p.graph, inputs) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!p.graph.node(p.graph.inputs()[i]).is_number())
        values_.emplace(Key{p.graph.inputs()[i], 0}, inputs[i].tensor());
  }

  std::vector<Value> run() {
    for (const Stage& s : p_.stages) {
      run_piece(s.piece);
      if (s.call) run_call(*s.call);
    }
    std::vector<Value> results;
    for (const Value& o : p_.graph.outputs()) {
      if (o.tag() == Value::Tag::GraphRef)
        results.emplace_back(values_.at(key(o.graph_ref())));
      else
        results.push_back(symbols_.evaluate(o));
    }
    return results;
  }

 private:
  void run_piece(const Piece& piece) {
    if (!piece.run) return;
    std::vector<Value> inputs;
    for (Key k : piece.inputs) inputs.emplace_back(values_.at(k));
    for (const sym::Expr& e : piece.numbers) inputs.emplace_back(symbols_.evaluate(SymInt(e)));
    const std::vector<Value> outputs = piece.run(inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      values_.insert_or_assign(piece.outputs[i], laid_out(outputs[i].tensor(), piece.specs[i]));
  }

  // The pieces behind are made for the graph's layout.
  Tensor laid_out(const Tensor& t, TensorSpec spec) const {
    for (SymInt& i : spec.strides) i = symbols_.evaluate(i);
    bool same = true;
    for (int d = 0; d < t.dim(); ++d)
      same = same && (t.sizes()[d].expect_int() < 2 || t.strides()[d].same_as(spec.strides[d]));
    if (same) return t;
    spec.sizes = t.sizes();
    spec.offset = 0;
    const Tensor copy = empty_strided_tensor(spec);
    Value args[] = {Value(copy), Value(t), Value(false)}, outs[1];
    dispatch_below_autograd(in_place_form(find_op("copy")), args, outs);
    return copy;
  }

  void run_call(const Node& n) {
    std::vector<Value> args, outs(n.op->schema.returns.size() + 1);
    for (const Value& a : n.args)
      args.push_back(a.tag() == Value::Tag::GraphRef ? Value(values_.at(key(a.graph_ref()))) : a);
    dispatch_below_autograd(*n.op, args.data(), outs.data());
    const Tensor t = outs[0].tensor();
    symbols_.learn(n, t);
    values_.insert_or_assign(Key{n.id, 0}, t);
  }

  const Pieces& p_;
  graph::RunSymbols symbols_;
  std::map<Key, Tensor> values_;
};

}  // namespace

bool has_unknown_sizes(const Graph& g) {
  for (const Node& n : g.calls())
    if (gives_unknown_size(n)) return true;
  return false;
}

GraphRunner compile_in_pieces(const Graph& g, const std::function<GraphRunner(const Graph&)>& compile_piece) {
  auto pieces = std::make_shared<Pieces>();
  pieces->graph = g;
  pieces->graph.takes_place_of.clear();
  pieces->stages = Splitter(pieces->graph, compile_piece).split();
  return [pieces](const std::vector<Value>& inputs) { return Run(*pieces, inputs).run(); };
}

}  // namespace fl
