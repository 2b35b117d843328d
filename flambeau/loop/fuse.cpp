#include "flambeau/loop/fuse.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

namespace fl::loop {
namespace {

constexpr size_t kMaxNodes = 48;
constexpr int kMaxOperations = 600;

Expr numel(const std::vector<Expr>& sizes) {
  Expr n = 1;
  for (const Expr& s : sizes) n *= s;
  return n;
}

Expr placed(const Expr& e, const LoopNode& n, const Placement& at, std::span<const Range> ranges) {
  Expr moved = sym::substitute(e, [&](const Expr& s) -> std::optional<Expr> {
    if (!s.is_symbol()) return std::nullopt;
    for (size_t k = 0; k < n.sizes.size(); ++k)
      if (s == loop_variable('i', static_cast<int>(k))) return at.i[k];
    for (size_t k = 0; k < n.reduce.size(); ++k)
      if (s == loop_variable('r', static_cast<int>(k))) return at.r[k];
    return std::nullopt;
  });
  return sym::simplify(moved, ranges);
}

bool has_data(const Expr& e) {
  for (const Expr& s : sym::symbols_of(e))
    if (s.name()[0] == '%') return true;
  return false;
}

}  // namespace

std::optional<std::vector<int>> group_levels(const NodeGraph& g, const Group& group) {
  std::vector<Range> ranges = group_ranges('p', group.outer), inner = group_ranges('q', group.inner);
  ranges.insert(ranges.end(), inner.begin(), inner.end());
  struct Member {
    const LoopNode* node;
    Placement at;
    int level;
  };
  std::map<int, Member> members;
  std::vector<int> levels;
  for (int id : group.nodes) {
    const LoopNode& n = g.nodes[id];
    auto at = place_node(n, group.outer, group.inner);
    if (!at) return std::nullopt;
    const bool inside = at->full && !group.inner.empty();
    int level = inside ? 1 : 0;
    for (const Access& a : n.reads) {
      auto w = g.writer.find(a.value);
      if (w == g.writer.end()) continue;
      auto m = members.find(w->second);
      if (m == members.end()) continue;
      const Member& from = m->second;
      // What is read has to be what this very iteration wrote.
      if (has_data(a.index)) return std::nullopt;
      const Expr read = placed(a.index, n, *at, ranges);
      const auto store = std::find_if(from.node->stores.begin(), from.node->stores.end(),
                                      [&](const Access& s) { return s.value == a.value; });
      if (store == from.node->stores.end() || !(placed(store->index, *from.node, from.at, ranges) == read))
        return std::nullopt;
      const bool reduction = !from.node->reduce.empty();
      const bool from_inside = from.at.full && !group.inner.empty();
      if (from_inside && !reduction && !inside) return std::nullopt;
      level = std::max(level, reduction               ? from.level + (inside ? 2 : 1)
                              : from_inside == inside ? from.level
                                                      : from.level + 1);
    }
    members.emplace(id, Member{&n, std::move(*at), level});
    levels.push_back(level);
  }
  return levels;
}

namespace {

// Sets of groups as bits.
class Bits {
 public:
  void set(size_t k) {
    if (words_.size() <= k / 64) words_.resize(k / 64 + 1);
    words_[k / 64] |= uint64_t{1} << (k % 64);
  }
  void clear(size_t k) {
    if (k / 64 < words_.size()) words_[k / 64] &= ~(uint64_t{1} << (k % 64));
  }
  bool test(size_t k) const { return k / 64 < words_.size() && (words_[k / 64] >> (k % 64) & 1); }
  bool merge(const Bits& o) {
    if (words_.size() < o.words_.size()) words_.resize(o.words_.size());
    bool changed = false;
    for (size_t k = 0; k < o.words_.size(); ++k) {
      const uint64_t next = words_[k] | o.words_[k];
      changed = changed || next != words_[k];
      words_[k] = next;
    }
    return changed;
  }

 private:
  std::vector<uint64_t> words_;
};

class Fuser {
 public:
  Fuser(const NodeGraph& g, bool fuse) : g_(g), fuse_(fuse) {}

  std::vector<Group> run() {
    for (int n = 0; n < static_cast<int>(g_.nodes.size()); ++n) add(n);
    return ordered();
  }

 private:
  struct State {
    Group group;
    bool closed = false;  // library call, scan, scatter: takes no more
    bool columns = false;
    int operations = 0;
    Bits ancestors;
    std::set<std::pair<int32_t, int32_t>> touches;
  };

  void add(int id) {
    const LoopNode& n = g_.nodes[id];
    const bool alone = !fuse_ || n.kind == LoopNode::Kind::Library || n.ordered;
    Bits needs;
    for (int d : n.depends) {
      needs.set(group_of_[d]);
      needs.merge(states_[group_of_[d]].ancestors);
    }
    if (!alone)
      for (const auto& [score, k] : candidates(n))
        if (join(id, k, needs)) return note(id, k);
    State s;
    s.group.nodes = {id};
    s.group.outer = n.sizes;
    s.group.inner = n.reduce;
    s.closed = alone;
    s.columns = n.columns;
    s.operations = n.operations;
    s.ancestors = needs;
    states_.push_back(std::move(s));
    note(id, static_cast<int>(states_.size()) - 1);
  }

  void note(int id, int k) {
    group_of_.resize(g_.nodes.size());
    group_of_[id] = k;
    auto touch = [&](GraphRef r) {
      states_[k].touches.insert({r.node, r.index});
      auto& list = touched_by_[r];
      if (list.empty() || list.back() != k) list.push_back(k);
    };
    for (const Access& a : g_.nodes[id].reads) touch(a.value);
    for (GraphRef r : g_.nodes[id].writes) touch(r);
  }

  // Groups that touch the same memory, the most bytes first.
  std::vector<std::pair<int64_t, int>> candidates(const LoopNode& n) {
    std::map<int, int64_t> bytes;
    std::set<std::pair<int32_t, int32_t>> seen;
    for (const Access& a : n.reads) {
      if (!seen.insert({a.value.node, a.value.index}).second) continue;
      auto it = touched_by_.find(a.value);
      if (it == touched_by_.end()) continue;
      const TensorSpec& s = g_.spec(a.value);
      const int64_t size = g_.hint(s.numel().expr()) * size_of(s.dtype);
      const auto& list = it->second;
      for (size_t k = list.size() > 6 ? list.size() - 6 : 0; k < list.size(); ++k) bytes[list[k]] += size;
    }
    std::vector<std::pair<int64_t, int>> out;
    for (const auto& [k, b] : bytes) out.emplace_back(b, k);
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second > b.second;
    });
    if (out.size() > 4) out.resize(4);
    return out;
  }

  bool join(int id, int k, const Bits& needs) {
    State& s = states_[k];
    const LoopNode& n = g_.nodes[id];
    if (s.closed || s.group.nodes.size() >= kMaxNodes || s.operations + n.operations > kMaxOperations)
      return false;
    // No way from the group through another one to the node.
    for (int d : n.depends) {
      const int from = group_of_[d];
      if (from != k && states_[from].ancestors.test(k)) return false;
    }
    Group merged = s.group;
    merged.nodes.push_back(id);
    const bool columns = s.columns || n.columns;
    if (!n.reduce.empty() && merged.inner.empty()) {
      merged.outer = n.sizes;
      merged.inner = n.reduce;
    }
    if (!merged.inner.empty() && !worth_it(merged, columns)) return false;
    if (!group_levels(g_, merged)) return false;
    s.group = std::move(merged);
    s.columns = columns;
    s.operations += n.operations;
    Bits added = needs;
    added.clear(k);  // the node may read from the group itself
    if (s.ancestors.merge(added))
      for (State& other : states_)
        if (&other != &s && other.ancestors.test(k)) other.ancestors.merge(s.ancestors);
    return true;
  }

  bool worth_it(const Group& merged, bool columns) const {
    const int64_t rows = g_.hint(numel(merged.outer)), points = g_.hint(numel(merged.inner));
    bool full_stores = false;
    for (int id : merged.nodes) {
      const LoopNode& n = g_.nodes[id];
      if (n.reduce.empty()) {
        auto at = place_node(n, merged.outer, merged.inner);
        if (!at) return false;
        full_stores = full_stores || at->full;
      } else if (n.columns != columns) {
        return false;
      }
    }
    // Columns are walked in strips: elementwise results along the way would be written in small pieces.
    if (columns && full_stores) return false;
    // Too few rows to keep the threads busy.
    return !(full_stores && rows < 16 && rows * points > 16384);
  }

  std::vector<Group> ordered() {
    const size_t count = states_.size();
    std::vector<std::set<int>> next(count);
    std::vector<int> waiting(count);
    for (size_t id = 0; id < g_.nodes.size(); ++id)
      for (int d : g_.nodes[id].depends)
        if (group_of_[d] != group_of_[id] && next[group_of_[d]].insert(group_of_[id]).second)
          ++waiting[group_of_[id]];
    std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>, std::greater<>> ready;
    for (size_t k = 0; k < count; ++k)
      if (waiting[k] == 0) ready.push({states_[k].group.nodes.front(), static_cast<int>(k)});
    std::vector<Group> out;
    while (!ready.empty()) {
      const int k = ready.top().second;
      ready.pop();
      out.push_back(std::move(states_[k].group));
      for (int j : next[k])
        if (--waiting[j] == 0) ready.push({states_[j].group.nodes.front(), j});
    }
    FL_ASSERT(out.size() == count, "fused groups depend on each other in a circle");
    return out;
  }

  const NodeGraph& g_;
  bool fuse_;
  std::vector<State> states_;
  std::vector<int> group_of_ = std::vector<int>(1);
  std::unordered_map<GraphRef, std::vector<int>, RefHash> touched_by_;
};

}  // namespace

std::vector<Group> fuse_nodes(const NodeGraph& g, bool fuse) { return Fuser(g, fuse).run(); }

}  // namespace fl::loop
