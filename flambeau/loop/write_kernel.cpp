#include "flambeau/loop/write_kernel.h"

#include <algorithm>
#include <map>
#include <set>

#include "flambeau/loop/body.h"

namespace fl::loop {
namespace {

std::vector<Range> joined(std::vector<Range> a, const std::vector<Range>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string kernel_name(const NodeGraph& g, const Group& group) {
  std::string out;
  std::string last;
  for (int id : group.nodes) {
    const std::string& op = g.graph->node(g.nodes[id].node).op->schema.name;
    if (op == last) continue;
    if (out.size() + op.size() > 48) break;
    out += (out.empty() ? "" : "_") + op;
    last = op;
  }
  return out;
}

// Buffers of one kernel, made as values are touched.
class Buffers {
 public:
  Buffers(const NodeGraph& g, Builder& b) : g_(g), builder_(b) {}
  int id(GraphRef r, bool written) {
    auto it = ids_.find(r);
    if (it != ids_.end() && (!written || written_.contains(it->second))) return it->second;
    if (it != ids_.end())
      FL_RAISE(InternalError, "the value of node {} is read before it is written", r.node);
    const int id = builder_.add_buffer(fmt::format("b{}", list.size()), g_.spec(r).dtype, written);
    if (written) written_.insert(id);
    ids_.emplace(r, id);
    list.push_back(r);
    return id;
  }
  std::vector<GraphRef> list;

 private:
  const NodeGraph& g_;
  Builder& builder_;
  std::unordered_map<GraphRef, int, RefHash> ids_;
  std::set<int> written_;
};

class KernelWriter {
 public:
  KernelWriter(const NodeGraph& g, const Group& group, const Readers& readers, std::set<int>& forced)
      : g_(g),
        group_(group),
        readers_(readers),
        forced_(forced),
        builder_(kernel_name(g, group)),
        buffers_(g, builder_),
        writer_(g, builder_, [this](GraphRef r, const Expr& flat, Val mask) { return read(r, flat, mask); }) {
  }

  WrittenKernel run() {
    outer_ = group_ranges('p', group_.outer);
    inner_ = group_ranges('q', group_.inner);
    for (const Range& r : inner_) row_ *= g_.hint(r.size);
    is_row_ = std::ranges::none_of(group_.nodes, [&](int id) { return g_.nodes[id].columns; });
    // A reduction of sizes that are all 1 keeps a loop.
    if (inner_.empty() && !group_.inner.empty()) inner_ = {{loop_variable('q', 0), Expr(1)}};
    builder_.set_outer(outer_);
    auto levels = group_levels(g_, group_);
    FL_ASSERT(levels.has_value(), "the group of {} cannot run as one kernel", kernel_name(g_, group_));
    int last = 0;
    for (size_t k = 0; k < group_.nodes.size(); ++k) {
      const LoopNode& n = g_.nodes[group_.nodes[k]];
      members_[group_.nodes[k]] = {*place_node(n, group_.outer, group_.inner), (*levels)[k]};
      last = std::max(last, (*levels)[k] + (n.reduce.empty() ? 0 : 1));
    }
    for (level_ = 0; level_ <= last; ++level_) write_level();
    return {builder_.finish(VectorAxis::None), buffers_.list};
  }

  /// Whether a value had to be stored that the first writing had not stored.
  bool incomplete() const { return incomplete_; }

 private:
  struct Member {
    Placement at;
    int level;
  };
  struct Computed {
    Val val;
    Expr flat;
    int level;  // of the stage that has it; even: visible from there on
  };

  void write_level() {
    const bool inside = level_ % 2 == 1;
    std::vector<int> now, finishing;
    for (int id : group_.nodes) {
      const Member& m = members_.at(id);
      if (m.level == level_) now.push_back(id);
      if (m.level + 1 == level_ && !g_.nodes[id].reduce.empty()) finishing.push_back(id);
    }
    if (now.empty() && finishing.empty()) return;
    builder_.begin_stage(inside ? inner_ : std::vector<Range>{});
    writer_.set_ranges(inside ? joined(outer_, inner_) : outer_);
    for (int id : finishing) finish(id);
    for (int id : now) {
      const LoopNode& n = g_.nodes[id];
      const Member& m = members_.at(id);
      if (n.reduce.empty()) {
        give(id, writer_.body(n.node, *n.lowered, m.at.i, {}));
      } else {
        results_[id] = builder_.reduce(n.lowered->reduce, writer_.body(n.node, *n.lowered, m.at.i, m.at.r));
      }
    }
  }

  void finish(int id) {
    const LoopNode& n = g_.nodes[id];
    give(id, writer_.finish(n.node, *n.lowered, members_.at(id).at.i, results_.at(id)));
  }

  void give(int id, const std::vector<Val>& values) {
    const LoopNode& n = g_.nodes[id];
    for (size_t o = 0; o < n.writes.size(); ++o) {
      const GraphRef w = n.writes[o];
      const Val v = writer_.to_dtype(values[o], g_.spec(w).dtype);
      const Expr flat = writer_.simplified(g_.flat_index(w, members_.at(id).at.i));
      computed_[w] = {v, flat, level_};
      if (needs_memory(id, w)) builder_.store(buffers_.id(w, true), flat, v);
    }
  }

  bool needs_memory(int id, GraphRef w) const {
    if (g_.is_output.contains(w) || forced_.contains(id)) return true;
    auto it = readers_.find(w);
    if (it == readers_.end()) return false;
    return std::any_of(it->second.begin(), it->second.end(), [&](int r) { return !members_.contains(r); });
  }

  Val read(GraphRef r, const Expr& flat, Val mask) {
    auto w = g_.writer.find(r);
    auto m = w == g_.writer.end() ? members_.end() : members_.find(w->second);
    if (m == members_.end()) return builder_.load(buffers_.id(r, false), flat, mask);
    auto c = computed_.find(r);
    FL_ASSERT(c != computed_.end(), "the value of node {} is read before it is computed", r.node);
    FL_ASSERT(c->second.flat == flat, "node {} is read at {} and computed at {}", r.node, flat.str(),
              c->second.flat.str());
    if (c->second.level % 2 == 0 || c->second.level == level_) return masked(c->second.val, mask);
    // It was computed in an earlier pass over the inner loops: again from its inputs, or from memory.
    const LoopNode& n = g_.nodes[w->second];
    if (n.lowered->kind == Lowered::Kind::Pointwise && is_repeated(n)) {
      const auto values = writer_.body(n.node, *n.lowered, m->second.at.i, {});
      const Val v = writer_.to_dtype(values[r.index], g_.spec(r).dtype);
      computed_[r] = {v, flat, level_};
      return masked(v, mask);
    }
    if (!needs_memory(w->second, r)) {
      forced_.insert(w->second);
      incomplete_ = true;
      return builder_.constant(g_.spec(r).dtype, 0);
    }
    return builder_.load(buffers_.id(r, true), flat, mask);
  }

  // Whether a pass computes the value again that an earlier one has had.
  bool is_repeated(const LoopNode& n) const {
    const MachineShape& machine = g_.machine;
    if (is_row_ && row_ <= machine.held_points) return true;
    return n.operations <= machine.repeated && (machine.repeats_functions || !n.heavy);
  }

  Val masked(Val v, Val mask) {
    return mask.id < 0 ? v : builder_.select(mask, v, builder_.constant(v.dtype, 0));
  }

  const NodeGraph& g_;
  const Group& group_;
  const Readers& readers_;
  std::set<int>& forced_;
  Builder builder_;
  Buffers buffers_;
  BodyWriter writer_;
  std::vector<Range> outer_, inner_;
  int64_t row_ = 1;      // points of the inner loops
  bool is_row_ = false;  // along memory
  std::map<int, Member> members_;
  std::unordered_map<GraphRef, Computed, RefHash> computed_;
  std::map<int, std::vector<Val>> results_;
  int level_ = 0;
  bool incomplete_ = false;
};

// A scan: one inner loop along the scanned dimension.
WrittenKernel write_scan(const NodeGraph& g, const Group& group, const LoopNode& n) {
  Builder b(kernel_name(g, group));
  Buffers buffers(g, b);
  BodyWriter writer(
      g, b, [&](GraphRef r, const Expr& flat, Val mask) { return b.load(buffers.id(r, false), flat, mask); });
  const Lowered& l = *n.lowered;
  Index i(n.sizes.size(), Expr(0));
  std::vector<Range> outer, inner;
  for (size_t d = 0; d < n.sizes.size(); ++d) {
    const bool scanned = static_cast<int>(d) == l.scan_dim;
    if (n.sizes[d].is_const(1) && !scanned) continue;
    i[d] = loop_variable(scanned ? 'q' : 'p', static_cast<int>(d));
    (scanned ? inner : outer).push_back({i[d], n.sizes[d]});
  }
  b.set_outer(outer);
  b.begin_stage(inner);
  writer.set_ranges(joined(outer, inner));
  const auto results = b.scan(l.reduce, writer.body(n.node, l, i, {}));
  const auto values = writer.finish(n.node, l, i, results);
  for (size_t o = 0; o < n.writes.size(); ++o)
    b.store(buffers.id(n.writes[o], true), writer.simplified(g.flat_index(n.writes[o], i)),
            writer.to_dtype(values[o], g.spec(n.writes[o]).dtype));
  return {b.finish(VectorAxis::None), buffers.list};
}

// A scatter: the base copied, then a store for every update.
std::vector<WrittenKernel> write_scatter(const NodeGraph& g, const Group& group, const LoopNode& n) {
  const Lowered& l = *n.lowered;
  const GraphRef target = n.writes[0];
  auto start = [&](Builder& b, Buffers& buffers) {
    return BodyWriter(g, b, [&](GraphRef r, const Expr& flat, Val mask) {
      return b.load(buffers.id(r, false), flat, mask);
    });
  };
  std::vector<WrittenKernel> out;
  {
    Builder b("copy_" + kernel_name(g, group));
    Buffers buffers(g, b);
    BodyWriter writer = start(b, buffers);
    std::vector<Expr> sizes;
    for (SymInt s : g.spec(target).sizes) sizes.push_back(s.expr());
    Index i;
    for (size_t d = 0; d < sizes.size(); ++d)
      i.push_back(sizes[d].is_const(1) ? Expr(0) : loop_variable('p', static_cast<int>(d)));
    b.set_outer(group_ranges('p', sizes));
    b.begin_stage({});
    writer.set_ranges(group_ranges('p', sizes));
    const GraphRef base = g.graph->node(n.node).args[l.input].graph_ref();
    const Val v = writer.to_dtype(writer.value(base, i), g.spec(target).dtype);
    b.store(buffers.id(target, true), writer.simplified(g.flat_index(target, i)), v);
    out.push_back({b.finish(VectorAxis::None), buffers.list});
  }
  Builder b(kernel_name(g, group));
  Buffers buffers(g, b);
  BodyWriter writer = start(b, buffers);
  Index i;
  for (size_t d = 0; d < n.sizes.size(); ++d)
    i.push_back(n.sizes[d].is_const(1) ? Expr(0) : loop_variable('p', static_cast<int>(d)));
  b.set_outer(group_ranges('p', n.sizes));
  b.begin_stage({});
  writer.set_ranges(group_ranges('p', n.sizes));
  const Lowered::Update u = writer.update(n.node, l, i);
  const Val v = writer.to_dtype(u.value, g.spec(target).dtype);
  b.store(buffers.id(target, true), writer.simplified(g.flat_index(target, u.index)), v, l.mode, u.mask);
  out.push_back({b.finish(VectorAxis::None), buffers.list});
  return out;
}

}  // namespace

std::vector<WrittenKernel> write_kernels(const NodeGraph& g, const Group& group, const Readers& readers) {
  std::vector<WrittenKernel> out;
  const LoopNode& first = g.nodes[group.nodes[0]];
  if (first.lowered->kind == Lowered::Kind::Scatter) {
    out = write_scatter(g, group, first);
  } else if (first.lowered->kind == Lowered::Kind::Scan) {
    out.push_back(write_scan(g, group, first));
  } else {
    std::set<int> forced;
    for (bool again = true; again;) {
      KernelWriter w(g, group, readers, forced);
      WrittenKernel k = w.run();
      again = w.incomplete();
      if (!again) out.push_back(std::move(k));
    }
  }
  ReductionOrder order{.cuts_columns = g.machine.cuts_columns, .lanes = g.machine.lanes};
  for (int id : group.nodes) {
    order.columns = order.columns || g.nodes[id].columns;
    order.cuts_columns = order.cuts_columns && !g.nodes[id].in_order;
  }
  for (WrittenKernel& k : out) arrange_loops(k.kernel, order, [&](const Expr& e) { return g.hint(e); });
  return out;
}

}  // namespace fl::loop
