#include "flambeau/loop/nodes.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "flambeau/loop/body.h"
#include "flambeau/loop/layout.h"
#include "flambeau/loop/lower_node.h"

namespace fl::loop {
namespace {

constexpr size_t kJoinedInLoops = 8;

// Operations that are rather done again by each reader than their result written to memory.
constexpr int kRecomputed = 12;
// A value that is so much smaller than another costs nothing to read beside it.
constexpr int64_t kSmallPart = 16;

// log2 of the points of a reduction that is worth cutting where nothing else asks for it.
constexpr int kFewPoints = 6;

bool is_transcendental(ScalarOp op) {
  return (op >= ScalarOp::Exp && op <= ScalarOp::Digamma) || op == ScalarOp::Pow || op == ScalarOp::Atan2;
}

// What one run of a body costs, without what it reads.
class CostOps : public BodyOps {
 public:
  int operations = 0, loads = 0;
  bool heavy = false, checks = false;
  Val emit(ScalarOp op, DType dtype, Val a, Val, Val) override {
    ++operations;
    heavy = heavy || is_transcendental(op) || op == ScalarOp::Mulhi;
    const bool boolean = op >= ScalarOp::Eq && op <= ScalarOp::Le;
    const bool typed = op == ScalarOp::Cast || op == ScalarOp::Bitcast;
    return {next_++, boolean                  ? DType::Bool
                     : typed || a.id < 0      ? dtype
                     : op == ScalarOp::Select ? dtype
                                              : real(op, a)};
  }
  Val constant(DType dtype, Literal) override { return {next_++, dtype}; }
  Val index(const Expr&) override { return {next_++, DType::Int64}; }
  Val load(int arg, std::span<const Expr>, Val, int item) override {
    ++loads;
    return {next_++, compute_dtype(spec(arg, item))};
  }
  Expr indirect(Val, const Expr&, std::string_view, Val* valid) override {
    checks = true;
    *valid = {next_++, DType::Bool};
    return Expr::symbol(fmt::format("%{}", next_++));
  }
  Expr as_index(Val) override { return Expr::symbol(fmt::format("%{}", next_++)); }
  Val number(int, DType dtype) override { return {next_++, dtype}; }
  CostOps(const graph::Graph& g, const graph::Node& n) : graph_(g), node_(n) {}

 private:
  static DType real(ScalarOp op, Val a) {
    if (op == ScalarOp::Real || op == ScalarOp::Imag || op == ScalarOp::Abs) return real_dtype(a.dtype);
    if (op == ScalarOp::Complex) return complex_dtype(a.dtype);
    return a.dtype;
  }
  DType spec(int arg, int item) const {
    const Value& v = node_.args[arg];
    if (v.is_number()) return v.scalar().is_float() ? DType::Float64 : v.scalar().default_dtype();
    return graph_.spec(v.tag() == Value::Tag::GraphRefList ? v.graph_refs()[item] : v.graph_ref()).dtype;
  }
  const graph::Graph& graph_;
  const graph::Node& node_;
  int32_t next_ = 0;
};

std::vector<Expr> variables(char letter, const std::vector<Expr>& sizes) {
  std::vector<Expr> out;
  for (size_t k = 0; k < sizes.size(); ++k)
    out.push_back(sizes[k].is_const(1) ? Expr(0) : loop_variable(letter, static_cast<int>(k)));
  return out;
}

std::vector<Range> ranges_of(char letter, const std::vector<Expr>& sizes) {
  std::vector<Range> out;
  for (size_t k = 0; k < sizes.size(); ++k)
    if (!sizes[k].is_const(1)) out.push_back({loop_variable(letter, static_cast<int>(k)), sizes[k]});
  return out;
}

Expr numel(const std::vector<Expr>& sizes) {
  Expr n = 1;
  for (const Expr& s : sizes) n *= s;
  return n;
}

class NodeMaker {
 public:
  NodeMaker(const graph::Graph& g, const NodeOptions& options) : g_(g), options_(options) {
    out_.graph = &g;
    out_.machine = options.machine;
  }

  NodeGraph run() {
    for (int32_t id : g_.inputs())
      for (size_t o = 0; o < g_.node(id).outs.size(); ++o) out_.sources[{id, static_cast<int>(o)}] = {};
    for (const graph::Node& n : g_.calls()) lower_call(n);
    count_uses();
    for (const graph::Node& n : g_.calls()) place(n);
    if (options_.takes_channels_last) lay_out_images(out_, library_, options_.takes_channels_last);
    for (const graph::Node& n : g_.calls()) add_node(n);
    for (LoopNode& n : out_.nodes) summarize(n);
    link();
    return std::move(out_);
  }

 private:
  struct Use {
    int32_t consumer;
    Expr points;  // how many it runs over
  };

  void lower_call(const graph::Node& n) {
    if (n.op->library != LibraryCall::None && !prefers_loops(n)) {
      library_.insert(n.id);
    } else {
      out_.lowered[n.id] = std::make_unique<Lowered>(lower_node(g_, n));
    }
  }

  // A loop over the result reads a masked element of every tensor; a routine copies them one by one, but
  // fuses with nothing.
  bool joins_in_loops(const graph::Node& n) const {
    const std::vector<GraphRef>& pieces = n.args[0].graph_refs();
    return pieces.size() <= kJoinedInLoops ||
           std::ranges::any_of(pieces, [&](GraphRef r) { return g_.spec(r).dtype != n.outs[0].dtype; });
  }

  // A library routine that cannot take these operands leaves the work to generated loops.
  bool prefers_loops(const graph::Node& n) const {
    if (n.op->library == LibraryCall::Join) return joins_in_loops(n);
    if (!n.op->lower || (n.op->library != LibraryCall::Matmul && !is_convolution(n.op->library)))
      return false;
    const DType d = n.outs[0].dtype;
    return d != DType::Float32 && d != DType::BFloat16 && d != DType::Float16;
  }

  GraphRef root(GraphRef r) const {
    for (;;) {
      auto it = out_.lowered.find(r.node);
      if (it == out_.lowered.end() || it->second->kind != Lowered::Kind::View) return r;
      r = g_.node(r.node).args[it->second->input].graph_ref();
    }
  }

  void count_uses() {
    for (const graph::Node& n : g_.calls()) {
      auto it = out_.lowered.find(n.id);
      if (it != out_.lowered.end() && it->second->kind == Lowered::Kind::View) continue;
      const bool library = it == out_.lowered.end();
      const Expr points = library ? Expr(0) : numel(it->second->sizes) * numel(it->second->reduce_sizes);
      for (const Value& v : n.args)
        graph::for_each_ref(v, [&](GraphRef r) {
          uses_[root(r)].push_back({n.id, points});
          if (library) memory_.insert({root(r).node, root(r).index});
        });
    }
    for (const Value& v : g_.outputs())
      graph::for_each_ref(v, [&](GraphRef r) {
        memory_.insert({root(r).node, root(r).index});
        out_.is_output[root(r)] = true;
      });
  }

  bool computed_in_place(const graph::Node& n, const Lowered& l) {
    if (!options_.inline_values || l.kind != Lowered::Kind::Pointwise || n.outs.size() != 1) return false;
    const GraphRef r = n.ref();
    if (memory_.contains({r.node, r.index})) return false;
    CostOps cost(g_, n);
    l.body(cost, variables('i', l.sizes), {});
    int total = cost.operations;
    bool heavy = cost.heavy;  // with what is computed in place for it
    for (const Value& v : n.args)
      graph::for_each_ref(v, [&](GraphRef a) {
        total += inlined_[root(a).node];
        heavy = heavy || heavy_.contains(root(a).node);
      });
    inlined_[n.id] = total;
    if (heavy) heavy_.insert(n.id);
    const auto& uses = uses_[r];
    const bool cheap = !cost.heavy && ((cost.loads <= 1 && total <= 3) || (cost.loads == 0 && total <= 6));
    sources_[n.id] = sources_of(n);
    const Expr points = numel(l.sizes);
    bool repeated = false;
    for (const Use& u : uses) repeated = repeated || !(u.points == points);
    if (repeated && (cost.heavy || total > 2) && !cheap) return settle(n.id);
    if (uses.size() <= 1 ? total <= 120 : cheap) return true;
    if (!repeated && !heavy && total <= kRecomputed && reads_no_more(n)) return true;
    return settle(n.id);
  }

  /// Values in memory that a value is computed from, those that are computed in place seen through. Nothing
  /// where one of its size lies in another order.
  std::optional<std::set<std::pair<int32_t, int32_t>>> sources_of(const graph::Node& n) const {
    const auto as_expr = [](const SymInt& i) { return i.expr(); };  // compares without a guard
    std::set<std::pair<int32_t, int32_t>> out;
    const TensorSpec& own = n.outs[0];
    bool in_order = true;
    for (const Value& v : n.args)
      graph::for_each_ref(v, [&](GraphRef a) {
        const GraphRef r = root(a);
        const TensorSpec& s = g_.spec(a);
        if (s.numel().expr() == own.numel().expr() &&
            !std::ranges::equal(s.strides, own.strides, {}, as_expr, as_expr))
          in_order = false;
        auto it = out_.sources.find(r);
        if (it == out_.sources.end() || it->second.kind != ValueSource::Kind::Inline) {
          out.insert({r.node, r.index});
        } else if (const auto& behind = sources_.at(r.node)) {
          out.insert(behind->begin(), behind->end());
        } else {
          in_order = false;
        }
      });
    return in_order ? std::optional(out) : std::nullopt;
  }

  /// Whether what a value is computed from takes no more bytes than the value itself: then those who read it
  /// had better compute it, and it is not written.
  bool reads_no_more(const graph::Node& n) const {
    const auto& sources = sources_.at(n.id);
    if (!sources) return false;
    const auto bytes = [&](const TensorSpec& s) { return out_.hint(s.numel().expr()) * size_of(s.dtype); };
    const int64_t own = bytes(n.outs[0]);
    int64_t read = 0;
    for (const auto& [node, index] : *sources) {
      const int64_t size = bytes(g_.spec({node, index}));
      // Small ones stay in the caches.
      if (size * kSmallPart > own) read += size;
    }
    return read <= own;
  }

  bool settle(int32_t node) {
    inlined_[node] = 0;
    heavy_.erase(node);
    return false;
  }

  void place(const graph::Node& n) {
    auto it = out_.lowered.find(n.id);
    const Lowered* l = it == out_.lowered.end() ? nullptr : it->second.get();
    ValueSource s;
    if (l && l->kind == Lowered::Kind::View) {
      s = {ValueSource::Kind::View, l};
    } else if (l && computed_in_place(n, *l)) {
      s = {ValueSource::Kind::Inline, l};
    }
    for (size_t o = 0; o < n.outs.size(); ++o) out_.sources[n.ref(static_cast<int>(o))] = s;
  }

  void add_node(const graph::Node& n) {
    if (out_.sources.at(n.ref()).kind != ValueSource::Kind::Buffer) return;
    LoopNode node;
    node.node = n.id;
    for (size_t o = 0; o < n.outs.size(); ++o) node.writes.push_back(n.ref(static_cast<int>(o)));
    if (library_.contains(n.id)) {
      node.kind = LoopNode::Kind::Library;
      push(std::move(node));
      return;
    }
    const Lowered& l = *out_.lowered.at(n.id);
    node.lowered = &l;
    node.sizes = l.sizes;
    node.reduce = l.reduce_sizes;
    node.ordered = l.kind == Lowered::Kind::Scan || l.kind == Lowered::Kind::Scatter;
    if (l.kind != Lowered::Kind::Reduction) return push(std::move(node));
    CanonicalReduction r = canonical_reduction(g_, n, l, [&](const Expr& e) { return out_.hint(e); });
    node.columns = r.columns;
    node.in_order = l.window || std::accumulate(r.logs.begin(), r.logs.end(), 0) < kFewPoints;
    const int64_t pieces = n.outs.size() == 1 ? split_count(r, out_.machine) : 1;
    if (pieces > 1) {
      split(std::move(node), r, pieces);
    } else {
      take(node, std::move(r.lowered));
      push(std::move(node));
    }
  }

  // Loops by a meaning that was made here.
  void take(LoopNode& node, Lowered l) {
    out_.made_lowered.push_back(std::make_unique<Lowered>(std::move(l)));
    node.lowered = out_.made_lowered.back().get();
    node.sizes = node.lowered->sizes;
    node.reduce = node.lowered->reduce_sizes;
  }

  // A reduction in two: pieces of its points, then the pieces.
  void split(LoopNode node, const CanonicalReduction& r, int64_t pieces) {
    SplitReduction parts = split_reduction(r, pieces);
    const GraphRef value{g_.id_limit() + static_cast<int32_t>(out_.pieces.size()), 0};
    CostOps types(g_, g_.node(node.node));
    TensorSpec s;
    s.dtype = node.lowered->body(types, variables('i', node.sizes), variables('r', node.reduce))[0].dtype;
    for (const Expr& e : parts.partial.sizes) s.sizes.push_back(SymInt(e));
    s.strides = contiguous_strides(s.sizes);
    out_.pieces[value] = s;
    out_.sources[value] = {};
    out_.piece_of[node.node] = value;
    auto add = [&](Lowered l, std::vector<GraphRef> writes, bool columns) {
      LoopNode n = node;
      take(n, std::move(l));
      n.writes = std::move(writes);
      n.columns = columns;
      push(std::move(n));
    };
    add(std::move(parts.partial), {value}, r.columns);
    add(std::move(parts.combine), node.writes, !node.sizes.empty());  // pieces come first in memory
  }

  void push(LoopNode node) {
    for (GraphRef r : node.writes) out_.writer[r] = static_cast<int>(out_.nodes.size());
    out_.nodes.push_back(std::move(node));
  }

  void summarize(LoopNode& n);

  void link() {
    for (size_t k = 0; k < out_.nodes.size(); ++k) {
      LoopNode& n = out_.nodes[k];
      std::set<int> depends;
      for (const Access& a : n.reads) {
        auto it = out_.writer.find(a.value);
        if (it != out_.writer.end() && it->second != static_cast<int>(k)) depends.insert(it->second);
      }
      n.depends.assign(depends.begin(), depends.end());
    }
  }

  const graph::Graph& g_;
  NodeOptions options_;
  NodeGraph out_;
  std::set<int32_t> library_;
  std::set<std::pair<int32_t, int32_t>> memory_;
  std::unordered_map<GraphRef, std::vector<Use>, RefHash> uses_;
  std::unordered_map<int32_t, int> inlined_;
  std::set<int32_t> heavy_;
  std::unordered_map<int32_t, std::optional<std::set<std::pair<int32_t, int32_t>>>> sources_;
};

// Everything that a node computes, for its summary.
void run_whole(const LoopNode& n, BodyWriter& w, const Index& i, const Index& r) {
  const Lowered& l = *n.lowered;
  switch (l.kind) {
    case Lowered::Kind::Pointwise:
      w.body(n.node, l, i, {});
      return;
    case Lowered::Kind::Reduction: {
      const auto results = w.builder().reduce(l.reduce, w.body(n.node, l, i, r));
      w.builder().begin_stage({});
      w.finish(n.node, l, i, results);
      return;
    }
    case Lowered::Kind::Scan:
      w.body(n.node, l, i, {});
      return;
    case Lowered::Kind::Scatter: {
      const Lowered::Update u = w.update(n.node, l, i);
      static_cast<void>(u);
      const GraphRef base = w.nodes().graph->node(n.node).args[l.input].graph_ref();
      Index at;
      while (at.size() < w.nodes().spec(base).sizes.size())
        at.push_back(Expr::symbol(fmt::format("c{}", at.size())));
      w.value(base, at);
      return;
    }
    case Lowered::Kind::View:
      return;
  }
}

void NodeMaker::summarize(LoopNode& n) {
  const graph::Node& call = g_.node(n.node);
  if (n.kind == LoopNode::Kind::Library) {
    for (const Value& v : call.args)
      graph::for_each_ref(v, [&](GraphRef r) { n.reads.push_back({root(r), Expr(0)}); });
    return;
  }
  Builder scratch("scratch");
  std::vector<Range> outer = ranges_of('i', n.sizes), inner = ranges_of('r', n.reduce);
  std::vector<Range> all = outer;
  all.insert(all.end(), inner.begin(), inner.end());
  scratch.set_outer(outer);
  scratch.begin_stage(inner);
  BodyWriter writer(out_, scratch, [&](GraphRef r, const Expr& flat, Val mask) {
    n.reads.push_back({r, flat});
    return scratch.load(scratch.add_buffer("b", out_.spec(r).dtype, false), flat, mask);
  });
  writer.set_ranges(all);
  const auto i = variables('i', n.sizes), r = variables('r', n.reduce);
  run_whole(n, writer, i, r);
  for (GraphRef w : n.writes)
    if (!n.ordered) n.stores.push_back({w, writer.simplified(out_.flat_index(w, i))});
  for (const Inst& inst : scratch.kernel().insts) {
    if (inst.kind != InstKind::Operation) continue;
    ++n.operations;
    n.heavy = n.heavy || is_transcendental(inst.op);
  }
}

}  // namespace

Expr loop_variable(char letter, int number) { return Expr::symbol(fmt::format("{}{}", letter, number)); }

const TensorSpec& NodeGraph::spec(GraphRef r) const {
  if (auto it = pieces.find(r); it != pieces.end()) return it->second;
  if (auto it = laid_out.find(r); it != laid_out.end()) return it->second;
  return graph->spec(r);
}

Expr NodeGraph::flat_index(GraphRef r, std::span<const Expr> index) const {
  const TensorSpec& s = spec(r);
  Expr flat = 0;
  for (size_t d = 0; d < index.size(); ++d) flat += index[d] * s.strides[d].expr();
  return flat;
}

int64_t NodeGraph::hint(const Expr& e) const {
  if (e.is_const()) return e.value();
  if (graph->shape_env)
    if (auto v = graph->shape_env->hint(graph->shape_env->simplify(e))) return *v;
  return sym::evaluate(e, [](const Expr&) { return int64_t{64}; });
}

NodeGraph make_nodes(const graph::Graph& g, const NodeOptions& options) {
  return NodeMaker(g, options).run();
}

}  // namespace fl::loop
