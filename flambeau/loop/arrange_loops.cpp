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

bool is_variable_of(const Kernel& k, const Expr& e) {
  const auto is_its = [&](const Range& r) { return r.variable == e; };
  return std::any_of(k.outer.begin(), k.outer.end(), is_its) ||
         std::any_of(k.stages.begin(), k.stages.end(),
                     [&](const Stage& s) { return std::any_of(s.inner.begin(), s.inner.end(), is_its); });
}

// Where an index is not affine, what the variable's first step adds: 0 for p // 16, 1 for p % 16.
int64_t first_step(const Kernel& k, const Expr& index, const Expr& variable, const Hint& hint) {
  const auto at = [&](int64_t n) {
    return sym::substitute(index, [&](const Expr& s) -> std::optional<Expr> {
      if (s == variable) return Expr(n);
      return is_variable_of(k, s) ? std::optional(Expr(0)) : std::nullopt;
    });
  };
  const Expr step = at(1) - at(0);
  // Data-dependent steps cannot be.
  for (const Expr& s : sym::symbols_of(step))
    if (value_of(s) >= 0) return 1 << 20;
  return hint(step);
}

int64_t stride_hint(const Kernel& k, const Expr& index, const Expr& variable, const Hint& hint) {
  const auto s = stride(index, variable);
  return std::abs(s ? hint(*s) : first_step(k, index, variable, hint));
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
      if (const int64_t w = weigh(m))
        key[l.variable.name()] += w * stride_hint(k, *m.index, l.variable, hint);
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

// By what the indices of memory divide the variable.
void collect_divisors(const Expr& e, const Expr& variable, std::vector<Expr>& out) {
  const bool divides = e.kind() == sym::Kind::FloorDiv || e.kind() == sym::Kind::Mod;
  if (divides && e.args()[0] == variable && std::find(out.begin(), out.end(), e.args()[1]) == out.end())
    out.push_back(e.args()[1]);
  if (e.kind() != sym::Kind::Const && e.kind() != sym::Kind::Symbol)
    for (const Expr& part : e.args()) collect_divisors(part, variable, out);
}

// How many accesses are not affine in a loop's variable, all loops together.
int uneven_accesses(const Kernel& k) {
  int n = 0;
  for (const Range& r : k.outer)
    for (const MemoryIndex& m : memory(k)) n += !stride(*m.index, r.variable);
  return n;
}

// The kernel with two loops in place of one of `size * divisor` points, the inner one of `divisor`.
Kernel with_loop_split(Kernel k, size_t at, const Expr& size, const Expr& divisor) {
  const Expr whole = k.outer[at].variable;
  const auto unused = [&] {
    for (int n = 0;; ++n)
      if (const Expr name = loop_variable('p', n); !is_variable_of(k, name)) return name;
  };
  const Range inner{unused(), divisor};
  k.outer.insert(k.outer.begin() + static_cast<std::ptrdiff_t>(at) + 1, inner);
  const Range outer{unused(), size};
  k.outer[at] = outer;
  const Expr value = outer.variable * divisor + inner.variable;
  each_index(k, [&](Expr& e) {
    if (!sym::depends_on(e, whole)) return;
    e = sym::simplify(
        sym::substitute(e, [&](const Expr& s) { return s == whole ? std::optional(value) : std::nullopt; }),
        k.outer);
  });
  return k;
}

// A loop over what memory has as two dimensions, p // 16 and p % 16, becomes two loops, where accesses are
// affine then that were not: their neighbours lie side by side.
void split_loops(Kernel& k) {
  const auto split_one = [&] {
    const int uneven = uneven_accesses(k);
    if (uneven == 0) return false;
    for (size_t at = 0; at < k.outer.size(); ++at) {
      std::vector<Expr> divisors;
      for (const MemoryIndex& m : memory(k)) collect_divisors(*m.index, k.outer[at].variable, divisors);
      for (const Expr& divisor : divisors) {
        const auto size = sym::exact_divide(k.outer[at].size, divisor);
        if (!size || size->is_const(1)) continue;
        if (Kernel split = with_loop_split(k, at, *size, divisor); uneven_accesses(split) < uneven) {
          k = std::move(split);
          return true;
        }
      }
    }
    return false;
  };
  while (split_one()) continue;
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
  split_loops(k);
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
