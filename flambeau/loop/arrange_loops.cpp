#include <algorithm>
#include <map>

#include "flambeau/loop/write_kernel.h"

namespace fl::loop {
namespace {

using Hint = std::function<int64_t(const Expr&)>;

// Every index expression of a kernel; f may replace it.
template <class F>
void each_index(Kernel& k, F&& f) {
  for (Inst& inst : k.insts)
    if (inst.kind == InstKind::Load || inst.kind == InstKind::Index) f(inst.index);
  for (Stage& s : k.stages)
    for (Store& st : s.stores) f(st.index);
}

void substitute_all(Kernel& k, const Expr& variable, const Expr& value) {
  each_index(k, [&](Expr& e) {
    if (sym::depends_on(e, variable))
      e = sym::substitute(e,
                          [&](const Expr& s) { return s == variable ? std::optional(value) : std::nullopt; });
  });
}

// Stride of a variable in an index: nothing where it is not affine.
std::optional<Expr> stride(const Expr& index, const Expr& variable) {
  auto a = sym::affine_in(index, variable);
  return a ? std::optional(a->first) : std::nullopt;
}

int64_t stride_hint(const Expr& index, const Expr& variable, const Hint& hint) {
  auto s = stride(index, variable);
  if (!s) return 1 << 20;
  // Data-dependent strides cannot be.
  return std::abs(hint(*s));
}

// Whether a value depends on a variable of the loops.
class Dependence {
 public:
  Dependence(const Kernel& k, const Expr& variable) : k_(k), variable_(variable) {}
  bool of(const Expr& index) {
    for (const Expr& s : sym::symbols_of(index)) {
      if (s == variable_) return true;
      const int32_t v = value_of(s);
      if (v >= 0 && of(v)) return true;
    }
    return false;
  }
  bool of(int32_t id) {
    if (id < 0) return false;
    auto [it, fresh] = known_.emplace(id, false);
    if (!fresh) return it->second;
    const Inst& i = k_.insts[id];
    bool out = false;
    if (i.kind == InstKind::Load || i.kind == InstKind::Index) out = of(i.index);
    if (i.kind == InstKind::Operation || i.kind == InstKind::Load) out = out || of(i.a) || of(i.b) || of(i.c);
    return known_[id] = out;
  }

 private:
  const Kernel& k_;
  const Expr& variable_;
  std::map<int32_t, bool> known_;
};

struct MemoryIndex {
  const Expr* index;
  bool inside;  // in a stage with inner loops
  bool store;
};

std::vector<MemoryIndex> memory(const Kernel& k) {
  std::vector<MemoryIndex> out;
  for (const Stage& s : k.stages) {
    for (const Store& st : s.stores) out.push_back({&st.index, !s.inner.empty(), true});
    for (int32_t id : s.insts)
      if (k.insts[id].kind == InstKind::Load) out.push_back({&k.insts[id].index, !s.inner.empty(), false});
  }
  return out;
}

// Largest strides first. `weigh` picks the accesses that count.
template <class W>
void sort_loops(const Kernel& k, std::vector<Range>& loops, const Hint& hint, W&& weigh) {
  std::map<std::string, int64_t> key;
  for (const Range& l : loops)
    for (const MemoryIndex& m : memory(k))
      if (const int64_t w = weigh(m)) key[l.variable.name()] += w * stride_hint(*m.index, l.variable, hint);
  std::stable_sort(loops.begin(), loops.end(), [&](const Range& a, const Range& b) {
    return key[a.variable.name()] > key[b.variable.name()];
  });
}

bool can_join(Kernel& k, const Range& a, const Range& b) {
  bool ok = true;
  each_index(k, [&](Expr& e) {
    if (!ok || (!sym::depends_on(e, a.variable) && !sym::depends_on(e, b.variable))) return;
    auto x = stride(e, a.variable), y = stride(e, b.variable);
    ok = x && y && *x == *y * b.size;
  });
  return ok;
}

// Neighbours that every access runs over as one become one loop.
void join_loops(Kernel& k, std::vector<Range>& loops) {
  for (size_t at = loops.size(); at-- > 1;) {
    if (!can_join(k, loops[at - 1], loops[at])) continue;
    substitute_all(k, loops[at - 1].variable, Expr(0));
    loops[at].size = loops[at].size * loops[at - 1].size;
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(at) - 1);
  }
}

// Whether an inner loop moves the address: a value of the outer iteration is read once.
bool moves_inside(const Kernel& k, const Expr& index) {
  for (const Stage& s : k.stages)
    for (const Range& r : s.inner)
      if (Dependence(k, r.variable).of(index)) return true;
  return false;
}

// Accesses inside of the inner loops that are contiguous along a variable; of those that the inner loops
// move, or of all.
int contiguous_accesses(const Kernel& k, const Expr& variable, bool moving_only) {
  int n = 0;
  for (const MemoryIndex& m : memory(k)) {
    if (!m.inside) continue;
    auto s = stride(*m.index, variable);
    if (s && s->is_const(1) && (!moving_only || moves_inside(k, *m.index))) ++n;
  }
  return n;
}

int contiguous_along_inner(const Kernel& k) {
  int most = 0;
  for (const Stage& s : k.stages)
    if (!s.inner.empty()) most = std::max(most, contiguous_accesses(k, s.inner.back().variable, true));
  return most;
}

// Stores of different lanes must not meet: the lane's variable has to move the address by itself.
bool lanes_are_apart(Kernel& k, const Expr& variable) {
  for (const Stage& s : k.stages)
    for (const Store& st : s.stores) {
      auto c = stride(st.index, variable);
      if (!c || c->is_const(0)) return false;
      Dependence d(k, variable);
      for (const Expr& symbol : sym::symbols_of(st.index))
        if (const int32_t v = value_of(symbol); v >= 0 && d.of(v)) return false;
    }
  return true;
}

bool has_scan(const Kernel& k) {
  return std::any_of(k.stages.begin(), k.stages.end(), [](const Stage& s) { return !s.scans.empty(); });
}

}  // namespace

void arrange_loops(Kernel& k, ReductionOrder order, const Hint& hint) {
  const bool columns = order.columns;
  k.lanes = order.lanes;
  const bool reduces =
      std::any_of(k.stages.begin(), k.stages.end(), [](const Stage& s) { return !s.inner.empty(); });
  sort_loops(k, k.outer, hint, [](const MemoryIndex& m) { return m.store ? 1000 : 1; });
  bool turned = false;  // a reduction by rows whose memory has been laid out along the outputs
  if (reduces) {
    // The outer variable with the most contiguous accesses carries the lanes.
    auto best = k.outer.end();
    int most = columns ? 1 : contiguous_along_inner(k) + 1;
    for (auto it = k.outer.begin(); it != k.outer.end(); ++it)
      if (const int n = contiguous_accesses(k, it->variable, !columns); n >= most) {
        most = n;
        best = it;
      }
    if (best != k.outer.end()) {
      std::rotate(best, best + 1, k.outer.end());
      turned = !columns;
    }
  }
  join_loops(k, k.outer);
  const bool apart = !k.outer.empty() && lanes_are_apart(k, k.outer.back().variable);
  if (has_scan(k))
    k.vector = VectorAxis::None;
  else if (reduces && !columns)
    k.vector = turned && apart ? VectorAxis::OuterTree : VectorAxis::Inner;
  else if (reduces && order.cuts_columns)
    k.vector = apart ? VectorAxis::OuterTree : VectorAxis::Inner;
  else
    k.vector = apart ? VectorAxis::Outer : VectorAxis::None;
  verify(k);
}

}  // namespace fl::loop
