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
  if (stage.inner.empty() || k.vector != VectorAxis::Inner || !stage.scans.empty()) return true;
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
    for (const Store& store : stage.stores) {
      if (is_data_dependent(store.index)) return true;
      if (store.mode != StoreMode::Set && !is_injective(k, stage, store.index)) return true;
    }
  return false;
}

}  // namespace fl::loop
