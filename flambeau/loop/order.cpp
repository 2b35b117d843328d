#include "flambeau/loop/order.h"

#include <algorithm>

namespace fl::loop {
namespace {

bool is_data_dependent(const Expr& e) {
  for (const Expr& s : sym::symbols_of(e))
    if (value_of(s) >= 0) return true;
  return false;
}

// Whether different lanes of the vector axis store to different elements, whatever the other variables are.
bool has_distinct_lanes(const Stage& stage, const Expr& index) {
  auto affine = sym::affine_in(index, stage.inner.back().variable);
  if (!affine || affine->first.is_const(0)) return false;
  // Values of earlier stages are the same at every point; those of this stage may differ.
  for (const Expr& s : sym::symbols_of(index))
    if (std::find(stage.insts.begin(), stage.insts.end(), value_of(s)) != stage.insts.end()) return false;
  return true;
}

bool is_loaded(const Kernel& k, const Stage& stage, int32_t buffer, const Expr* other_than) {
  for (int32_t id : stage.insts) {
    const Inst& inst = k.insts[id];
    if (inst.kind == InstKind::Load && inst.slot == buffer && !(other_than && inst.index == *other_than))
      return true;
  }
  return false;
}

// Whether the index takes a different value in every outer iteration: each stride spans the loops below it.
bool is_injective(const Kernel& k, const Stage& stage, const Expr& index) {
  std::vector<Range> all = k.outer;
  all.insert(all.end(), stage.inner.begin(), stage.inner.end());
  Expr span(1), rest = index;
  for (size_t n = all.size(); n-- > 0;) {
    auto affine = sym::affine_in(rest, all[n].variable);
    if (!affine) return false;
    rest = affine->second;
    if (all[n].size.is_const(1)) continue;
    const bool is_inner = n >= k.outer.size();
    if (affine->first.is_const(0) && is_inner) continue;
    if (!sym::known_nonnegative(affine->first - span, all)) return false;
    span += affine->first * (all[n].size - 1);
  }
  return true;
}

}  // namespace

bool is_sequential(const Kernel& k, const Stage& stage) {
  const bool cut = k.vector == VectorAxis::Inner || k.vector == VectorAxis::OuterTree;
  if (stage.inner.empty() || !cut || !stage.scans.empty()) return true;
  for (const Store& store : stage.stores) {
    if (!has_distinct_lanes(stage, store.index)) return true;
    if (is_loaded(k, stage, store.buffer, &store.index)) return true;
    for (const Store& other : stage.stores)
      if (&other != &store && other.buffer == store.buffer) return true;
  }
  return false;
}

bool has_colliding_stores(const Kernel& k) {
  for (const Stage& stage : k.stages)
    for (const Store& store : stage.stores)
      if (may_collide(k, stage, store)) return true;
  return false;
}

bool may_collide(const Kernel& k, const Stage& stage, const Store& store) {
  return is_data_dependent(store.index) ||
         (store.mode != StoreMode::Set && !is_injective(k, stage, store.index));
}

namespace {

// Which values may differ between iterations of the loop over `axis`.
std::vector<bool> varying_values(const Kernel& k, const Expr& axis) {
  std::vector<bool> out(k.insts.size());
  const auto is_varying = [&](const Expr& e) {
    for (const Expr& s : sym::symbols_of(e))
      if (s == axis || (value_of(s) >= 0 && out[value_of(s)])) return true;
    return false;
  };
  const auto any = [&](const std::vector<int32_t>& ids) {
    return std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return out[id]; });
  };
  for (const Stage& stage : k.stages) {
    for (int32_t id : stage.insts) {
      const Inst& i = k.insts[id];
      if (i.kind == InstKind::Scanned)
        out[id] = any(stage.scans[i.a].operands);
      else if (i.kind == InstKind::Operation)
        out[id] = (i.a >= 0 && out[i.a]) || (i.b >= 0 && out[i.b]) || (i.c >= 0 && out[i.c]);
      else
        out[id] = is_varying(i.index) || (i.kind == InstKind::Load && i.a >= 0 && out[i.a]);
    }
    for (const Reduction& r : stage.reductions)
      for (int32_t id : r.results) out[id] = any(r.operands);
  }
  return out;
}

}  // namespace

bool has_independent_lanes(const Kernel& k) {
  if (k.outer.empty()) return false;
  const Expr axis = k.outer.back().variable;
  const std::vector<bool> varying = varying_values(k, axis);
  int stores = 0;
  for (const Stage& stage : k.stages) {
    for (const Range& r : stage.inner)
      for (const Expr& s : sym::symbols_of(r.size))
        if (s == axis || (value_of(s) >= 0 && varying[value_of(s)])) return false;
    for (const Store& store : stage.stores) {
      ++stores;
      auto affine = sym::affine_in(store.index, axis);
      if (!affine || affine->first.is_const(0)) return false;
      for (const Expr& s : sym::symbols_of(store.index))
        if (value_of(s) >= 0 && varying[value_of(s)]) return false;
    }
  }
  return stores < 2 || !has_colliding_stores(k);
}

int64_t operation_cost(const Inst& i) {
  if (i.kind == InstKind::Load) return 1;
  if (i.kind != InstKind::Operation) return 0;
  const bool is_function = (i.op >= ScalarOp::Exp && i.op <= ScalarOp::Digamma) ||
                           (i.op >= ScalarOp::Pow && i.op <= ScalarOp::Nextafter) ||
                           (i.op == ScalarOp::Rem && is_floating(i.dtype));
  return is_function ? 20 : i.op == ScalarOp::Div || i.op == ScalarOp::Sqrt ? 4 : 1;
}

int64_t point_cost(const Kernel& k, const Stage& stage) {
  int64_t cost = static_cast<int64_t>(stage.stores.size());
  for (int32_t id : stage.insts) cost += operation_cost(k.insts[id]);
  for (const auto* list : {&stage.reductions, &stage.scans})
    for (const Reduction& r : *list)
      cost += r.op == ReduceOp::OnlineSoftmax ? 24 : r.op == ReduceOp::Welford ? 6 : result_count(r.op);
  return cost;
}

}  // namespace fl::loop
