#include "flambeau/codegen/gpu/grid_plan.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "flambeau/codegen/gpu/held_rows.h"
#include "flambeau/loop/order.h"
#include "flambeau/loop/reduce.h"

namespace fl::codegen {
namespace {

using loop::Kernel;
using loop::Stage;
using sym::Expr;

constexpr int64_t kVectorBytes = 16;
constexpr int kMostLanes = 8;
// Operations of the lanes of one vector: compile time, and registers, count too.
constexpr int64_t kVectorCost = 512;
constexpr int kWarp = 32;
constexpr int64_t kShortLoop = 16;  // points of an inner loop
constexpr int kMostTeam = 512;      // of rows
constexpr int kColumnTeam = 64;     // threads that share a column
constexpr int kColumnsAcross = 8;   // columns, or vectors of them, side by side: whole sectors of memory
constexpr int64_t kColumnLanes = 4;
constexpr int64_t kColumnWords = 32;     // of a thread's states
constexpr int64_t kColumnCost = 256;     // operations of the points of its states
constexpr int kHeld = 4, kMostHeld = 8;  // vectors of a row in a thread's registers
constexpr int64_t kHeldPoints = 32;      // points of them
constexpr int64_t kHeldWords = 128;      // registers for what later stages need of them
constexpr int64_t kHeldCost = 4096;      // operations of all of them
constexpr int64_t kSharedBytes = 40960;

bool is_size(const Kernel& k, const Expr& s) {
  return std::find(k.sizes.begin(), k.sizes.end(), s) != k.sizes.end();
}
bool is_of_sizes(const Kernel& k, const Expr& e) {
  const auto symbols = sym::symbols_of(e);
  return std::all_of(symbols.begin(), symbols.end(), [&](const Expr& s) { return is_size(k, s); });
}

bool merges_in_pairs(const Kernel& k) {
  for (const Stage& stage : k.stages)
    for (const loop::Reduction& r : stage.reductions)
      if (loop::merges_by_rescaling(r.op)) return false;
  return true;
}

bool any_cut(const Kernel& k) {
  return std::any_of(k.stages.begin(), k.stages.end(), [&](const Stage& s) { return is_cut(k, s); });
}
// Whether each stage has no inner loops, or but a few points, as windows have.
bool has_short_loops(const Kernel& k) {
  return std::all_of(k.stages.begin(), k.stages.end(), [](const Stage& s) {
    Expr points(1);
    for (const sym::Range& r : s.inner) points = points * r.size;
    return points.is_const() && points.value() <= kShortLoop;
  });
}

// f(stage, buffer, index) for each load and store of memory.
template <class F>
void each_access(const Kernel& k, F&& f) {
  for (const Stage& stage : k.stages) {
    for (int32_t id : stage.insts)
      if (k.insts[id].kind == loop::InstKind::Load && !k.buffers[k.insts[id].slot].by_value)
        f(stage, k.insts[id].slot, k.insts[id].index);
    for (const loop::Store& s : stage.stores) f(stage, s.buffer, s.index);
  }
}

// What has to be tested so that vectors along an axis are aligned.
class Alignment {
 public:
  Alignment(const Kernel& k, GridPlan& plan) : k_(k), plan_(plan) {}

  // The loop whose iterations are lanes in a stage: null where none is.
  const sym::Range* axis(const Stage& stage) const {
    if (plan_.kind != GridPlan::Kind::Rows) return k_.outer.empty() ? nullptr : &k_.outer.back();
    return is_cut(k_, stage) ? &stage.inner.back() : nullptr;
  }
  bool is_contiguous(const Stage& stage, const Expr& index) const {
    const sym::Range* along = axis(stage);
    if (!along || !sym::depends_on(index, along->variable)) return false;
    const auto affine = sym::affine_in(index, along->variable);
    return affine && affine->first.is_const(1);
  }
  // Adds the tests; false: no launch can pass them, or they cannot be made.
  bool add(const Stage& stage, int32_t buffer, const Expr& index) {
    const int64_t element = size_of(k_.buffers[buffer].dtype);
    const int64_t multiple = std::min<int64_t>(kVectorBytes, element * plan_.lanes);
    Expr rest = without_multiples(sym::affine_in(index, axis(stage)->variable)->second, element, multiple);
    std::vector<AlignmentTest> tests;
    for (const Expr& s : sym::symbols_of(rest)) {
      if (is_size(k_, s)) continue;
      const auto affine = sym::affine_in(rest, s);
      if (!affine || !is_of_sizes(k_, affine->first)) return false;
      tests.push_back({-1, affine->first, element, multiple});
      rest = affine->second;
    }
    if (!is_of_sizes(k_, rest)) return false;
    tests.push_back({buffer, rest, element, multiple});
    std::erase_if(tests, [](const AlignmentTest& t) { return t.buffer < 0 && holds(t); });
    for (const AlignmentTest& t : tests)
      if (t.offset.is_const() && !holds(t)) return false;
    for (const AlignmentTest& t : tests) add(t);
    plan_.aligned.emplace_back(buffer, index);
    return true;
  }
  bool add_size(const Expr& size) {
    if (!is_of_sizes(k_, size)) return false;
    const AlignmentTest t{-1, size, 1, plan_.lanes};
    if (size.is_const()) return holds(t);
    add(t);
    return true;
  }

 private:
  // The expression without terms that never change the alignment: 64 * (p // 3), say.
  static Expr without_multiples(const Expr& e, int64_t element, int64_t multiple) {
    Expr out(0);
    const auto keep = [&](const Expr& term) {
      const bool scaled = term.kind() == sym::Kind::Mul && term.args()[0].is_const();
      if (!scaled || term.args()[0].value() * element % multiple != 0) out += term;
    };
    if (e.kind() == sym::Kind::Add)
      for (const Expr& term : e.args()) keep(term);
    else
      keep(e);
    return out;
  }
  // Of the constant offset.
  static bool holds(const AlignmentTest& t) {
    return t.offset.is_const() && t.offset.value() * t.element % t.multiple == 0;
  }
  void add(const AlignmentTest& t) {
    for (const AlignmentTest& other : plan_.tests)
      if (other.buffer == t.buffer && other.offset == t.offset && other.element == t.element &&
          other.multiple >= t.multiple)
        return;
    plan_.tests.push_back(t);
  }

  const Kernel& k_;
  GridPlan& plan_;
};

// Whether memory along an axis is other memory for other items, and not read again.
bool moves_with_items(const Kernel& k, const Expr& axis, const Expr& index) {
  bool others = false;
  for (const sym::Range& r : k.outer) {
    if (r.variable == axis) continue;
    others = true;
    if (sym::depends_on(index, r.variable)) return true;
  }
  return !others;
}

// Lanes whose narrowest contiguous access is one of 16 bytes.
int wanted_lanes(const Kernel& k, const Alignment& alignment) {
  int64_t narrowest = 0, widest = 0;
  each_access(k, [&](const Stage& stage, int32_t buffer, const Expr& index) {
    if (!alignment.is_contiguous(stage, index)) return;
    const int64_t size = size_of(k.buffers[buffer].dtype);
    narrowest = narrowest ? std::min(narrowest, size) : size;
    if (moves_with_items(k, alignment.axis(stage)->variable, index)) widest = std::max(widest, size);
  });
  if (narrowest == 0) return 1;
  int lanes = static_cast<int>(std::clamp<int64_t>(kVectorBytes / narrowest, 1, kMostLanes));
  // Of elements of 4 bytes, a thread's neighbour takes the next 16 bytes, not those after the next.
  if (widest >= 4) lanes = std::min(lanes, static_cast<int>(kVectorBytes) / 4);
  int64_t cost = 0;
  for (const Stage& stage : k.stages) cost = std::max(cost, loop::point_cost(k, stage));
  while (lanes > 1 && lanes * cost > kVectorCost) lanes /= 2;
  return lanes;
}

// Sets lanes, and what they need; leaves 1 where no access gains.
void choose_lanes(const Kernel& k, GridPlan& plan, int most) {
  Alignment alignment(k, plan);
  plan.lanes = std::min(wanted_lanes(k, alignment), most);
  if (plan.lanes == 1) return;
  bool possible = true;
  if (plan.kind == GridPlan::Kind::Rows) {
    for (const Stage& stage : k.stages)
      if (is_cut(k, stage)) possible = possible && alignment.add_size(stage.inner.back().size);
  } else if (plan.kind == GridPlan::Kind::Columns || k.outer.size() > 1) {
    possible = alignment.add_size(k.outer.back().size);
  }
  if (possible)
    each_access(k, [&](const Stage& stage, int32_t buffer, const Expr& index) {
      if (!alignment.is_contiguous(stage, index)) return;
      const bool added = alignment.add(stage, buffer, index);
      // One element after the other, a thread would touch memory that its neighbours do not.
      if (plan.kind == GridPlan::Kind::Points) possible = possible && added;
    });
  if (possible && !plan.aligned.empty()) return;
  plan.lanes = 1;
  plan.tests.clear();
  plan.aligned.clear();
}

// Of a thread, in shared memory; never 0.
int64_t state_bytes(const Kernel& k) {
  int64_t most = 1;
  for (const Stage& stage : k.stages)
    for (const loop::Reduction& r : stage.reductions) {
      int64_t bytes = 0;
      for (DType d : loop::state_dtypes(r.op, k.insts[r.operands[0]].dtype)) bytes += size_of(d);
      most = std::max(most, bytes);
    }
  return most;
}

// Many threads a column where states or bodies are large: few of them are a thread's then. Every state is
// written out, so that compile time grows with all of it.
void plan_columns(const Kernel& k, GridPlan& plan) {
  plan.kind = GridPlan::Kind::Columns;
  const int64_t bytes = state_bytes(k);
  int64_t cost = 1;
  for (const Stage& stage : k.stages)
    if (is_cut(k, stage)) cost = std::max(cost, loop::point_cost(k, stage));
  const bool large = bytes > 8 || 2 * cost * k.lanes / kColumnTeam > kColumnCost;
  plan.team = std::min(k.lanes, large ? 2 * kColumnTeam : kColumnTeam);
  plan.across = plan.serial ? 1 : kColumnsAcross;
  while (plan.team > 1 && plan.team * plan.across * bytes > kSharedBytes) plan.team /= 2;
  plan.block = plan.team * plan.across;
  const int64_t states = k.lanes / plan.team;
  const int64_t most = std::min({kColumnLanes, kColumnWords / (states * std::max<int64_t>(bytes / 4, 1)),
                                 kColumnCost / (states * cost), kSharedBytes / (plan.block * bytes)});
  if (!plan.serial && plan.team >= kWarp && most > 1)
    choose_lanes(k, plan, static_cast<int>(std::bit_floor(static_cast<uint64_t>(most))));
  if (plan.lanes > 1) plan.versions.push_back({plan.team, plan.lanes, 0});
  plan.versions.push_back({plan.team, 1, 0});
}

uint64_t ceil_power(int64_t n) { return std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))); }
int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Short rows are held in the registers of a warp or a part of one, which needs no memory to put states
// together; longer ones in those of the whole team, where that saves reading them again.
void add_held_versions(const HeldRows& rows, GridPlan& plan) {
  int most = kMostHeld;
  const auto too_much = [&](int64_t points) {
    return points > kHeldPoints || points * rows.cost > kHeldCost || points * rows.words > kHeldWords;
  };
  while (most > 1 && too_much(int64_t{most} * plan.lanes)) most /= 2;
  const int warp = std::min(kWarp, plan.team);
  const auto add = [&](int team, int64_t held) {
    plan.versions.push_back({team, plan.lanes, static_cast<int>(held)});
  };
  if (!rows.row.is_const()) {
    add(warp, std::min(most, kHeld));
    if (rows.repeats && plan.team > kWarp) add(plan.team, std::min(most, kHeld));
    return;
  }
  const int64_t vectors = ceil_divide(rows.row.value(), plan.lanes);
  if (vectors == 0) return;
  if (vectors <= int64_t{warp} * most) {
    // As few threads as read whole lines of memory together.
    const uint64_t line = std::min<uint64_t>(std::max(8, kWarp / plan.lanes), ceil_power(vectors));
    const uint64_t team = std::max(line, ceil_power(ceil_divide(vectors, std::min(most, kHeld))));
    const int threads = static_cast<int>(std::min<uint64_t>(team, static_cast<uint64_t>(warp)));
    add(threads, ceil_divide(vectors, threads));
  } else if (rows.repeats && vectors <= int64_t{plan.team} * most) {
    const uint64_t team =
        std::max<uint64_t>(2 * kWarp, ceil_power(ceil_divide(vectors, std::min(most, kHeld))));
    plan.team = plan.block = static_cast<int>(std::min<uint64_t>(team, static_cast<uint64_t>(plan.team)));
    add(plan.team, ceil_divide(vectors, plan.team));
  }
}

void plan_rows(const Kernel& k, GridPlan& plan) {
  plan.kind = GridPlan::Kind::Rows;
  choose_lanes(k, plan, std::max(1, k.lanes / kWarp));
  plan.team = std::min(k.lanes / plan.lanes, kMostTeam);
  while (plan.team > kWarp && plan.team * plan.lanes * state_bytes(k) > kSharedBytes) plan.team /= 2;
  // Barriers hold up whole blocks: a team of several warps is one.
  plan.block = plan.serial || plan.team > kWarp ? plan.team : 128;
  auto rows = plan.serial ? std::nullopt : find_held_rows(k);
  if (rows && is_of_sizes(k, rows->row)) {
    add_held_versions(*rows, plan);
    plan.row = rows->row;
    plan.known_before = std::move(rows->known_before);
  }
  // All rows that can be read in vectors are held where their length is known and one of them is.
  const bool all_held = !plan.versions.empty() && plan.row.is_const();
  if (plan.lanes > 1 && !all_held) plan.versions.push_back({plan.team, plan.lanes, 0});
  if (plan.lanes > 1 || !all_held) plan.versions.push_back({plan.team, 1, 0});
}

}  // namespace

bool is_cut(const Kernel& k, const Stage& stage) {
  return !stage.inner.empty() && !loop::is_sequential(k, stage);
}

bool GridPlan::is_aligned(int32_t buffer, const Expr& index) const {
  return std::any_of(aligned.begin(), aligned.end(),
                     [&](const auto& a) { return a.first == buffer && a.second == index; });
}

GridPlan plan_grid(const Kernel& k, bool deterministic) {
  GridPlan plan;
  plan.serial = deterministic && loop::has_colliding_stores(k);
  const bool independent = loop::has_independent_lanes(k);
  if (!any_cut(k)) {
    const bool short_loops = has_short_loops(k);
    if (plan.serial)
      plan.block = 1;
    else if (!short_loops)
      plan.block = 64;
    if (!plan.serial && short_loops && independent) choose_lanes(k, plan, kMostLanes);
    return plan;
  }
  if (k.vector == loop::VectorAxis::OuterTree && independent && merges_in_pairs(k)) {
    plan_columns(k, plan);
    return plan;
  }
  plan_rows(k, plan);
  return plan;
}

ShapeRule shape_rule(const Kernel& k, const GridPlan& plan) {
  ShapeRule rule;
  const bool columns = plan.kind == GridPlan::Kind::Columns;
  Expr rows(1);
  for (size_t n = 0; n + (columns ? 1 : 0) < k.outer.size(); ++n) rows = rows * k.outer[n].size;
  rule.rows = SizeProgram(rows, k.sizes);
  if (columns) rule.columns = SizeProgram(k.outer.back().size, k.sizes);
  rule.threads = static_cast<unsigned>(plan.block);
  rule.most_blocks = plan.serial ? 1 : int64_t{1} << 20;
  rule.enough_wide_blocks = kEnoughBlocks;
  rule.across = columns ? static_cast<unsigned>(plan.across) : 0;
  rule.lanes = plan.lanes;
  rule.items_per_block = columns ? 1 : plan.block / plan.team;
  if (plan.kind == GridPlan::Kind::Points) rule.items_per_block *= plan.lanes;
  for (const GridVersion& v : plan.versions)
    if (v.held) rule.short_rows.push_back({v.longest_row(), plan.block / v.team});
  if (!rule.short_rows.empty()) rule.row = SizeProgram(plan.row, k.sizes);
  return rule;
}

}  // namespace fl::codegen
