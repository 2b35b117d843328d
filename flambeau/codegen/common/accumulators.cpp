#include "flambeau/codegen/common/accumulators.h"

namespace fl::codegen {

using llvm::Value;
using loop::State;

Accumulators::Accumulators(BodyEmitter& body, const loop::Kernel& k, const loop::Stage& stage, Layout layout)
    : body_(body), k_(k), layout_(layout), in_memory_(layout.in_memory) {
  for (const loop::Reduction& r : stage.reductions) reductions_.push_back(make_item(r));
  for (const loop::Reduction& r : stage.scans) scans_.push_back(make_item(r));
}

Accumulators::Item Accumulators::make_item(const loop::Reduction& r) {
  Item item{&r, {}, {}};
  const auto dtypes = loop::state_dtypes(r.op, k_.insts[r.operands[0]].dtype);
  for (size_t c = 0; c < dtypes.size(); ++c) {
    Slot slot{dtypes[c], {}, {}, nullptr, nullptr, nullptr, layout_.count};
    llvm::Type* element = body_.register_type(dtypes[c]);
    const bool is_pair = is_complex(dtypes[c]), is_count = r.op == loop::ReduceOp::Welford && c == 2;
    if (is_count && layout_.counts == Counts::One) slot.shared = body_.stack_slot(element, "count");
    if (is_count && layout_.counts == Counts::EachVector) slot.count = 1;
    llvm::Type* type = LaneOps::with_count(element, slot.count);
    for (int p = 0; !layout_.in_memory && p < layout_.parts; ++p) {
      slot.re.push_back(body_.stack_slot(type, "state"));
      if (is_pair) slot.im.push_back(body_.stack_slot(type, "state"));
    }
    if (layout_.lanes_are_points || layout_.in_memory) {
      type = llvm::ArrayType::get(type, static_cast<uint64_t>(layout_.parts));
      slot.all_re = body_.stack_slot(type, "states");
      if (is_pair) slot.all_im = body_.stack_slot(type, "states");
    }
    item.state.push_back(std::move(slot));
  }
  item.pending.resize(dtypes.size());
  return item;
}

Value* Accumulators::address(const Slot& slot, bool imaginary, llvm::Type* type, int part) {
  if (!in_memory_) return imaginary ? slot.im[part] : slot.re[part];
  auto& b = body_.builder();
  return b.CreateGEP(type, imaginary ? slot.all_im : slot.all_re,
                     dynamic_part_ ? dynamic_part_ : b.getInt64(static_cast<uint64_t>(part)));
}

Val Accumulators::load(const Slot& slot, int part) {
  auto& b = body_.builder();
  Lanes out;
  out.level = body_.level();
  llvm::Type* element = body_.register_type(slot.dtype);
  if (is_shared(slot)) {
    out.re = b.CreateLoad(element, slot.shared);
    return body_.add_lanes(slot.dtype, out);
  }
  out.count = slot.count;
  llvm::Type* type = LaneOps::with_count(element, out.count);
  out.re = b.CreateLoad(type, address(slot, false, type, part));
  if (is_complex(slot.dtype)) out.im = b.CreateLoad(type, address(slot, true, type, part));
  return body_.add_lanes(slot.dtype, out);
}

void Accumulators::store(const Slot& slot, int part, Val v) {
  auto& b = body_.builder();
  const Lanes l = body_.widened(v, slot.count);
  llvm::Type* type = l.re->getType();
  b.CreateStore(l.re, address(slot, false, type, part));
  if (l.im) b.CreateStore(l.im, address(slot, true, type, part));
}

State Accumulators::load_state(const Item& item, int part) {
  State out;
  for (const Slot& slot : item.state) out.push_back(load(slot, part));
  return out;
}

State Accumulators::identity_of(const Item& item) {
  return loop::reduce_identity(body_, item.reduction->op, k_.insts[item.reduction->operands[0]].dtype);
}

void Accumulators::reset() {
  for (auto* list : {&reductions_, &scans_})
    for (Item& item : *list) {
      const State identity = identity_of(item);
      for (size_t c = 0; c < identity.size(); ++c) {
        const Slot& slot = item.state[c];
        if (slot.shared)
          body_.builder().CreateStore(body_.lanes(identity[c]).re, slot.shared);
        else
          for (int p = 0; p < layout_.parts; ++p) store(slot, p, identity[c]);
      }
    }
}

void Accumulators::reset_part() {
  for (const Item& item : reductions_) {
    const State identity = identity_of(item);
    for (size_t c = 0; c < identity.size(); ++c) store(item.state[c], 0, identity[c]);
  }
}

void Accumulators::merge_pair(Value* a, Value* b) {
  for (const Item& item : reductions_) {
    select_part(b);
    const State second = load_state(item, 0);
    select_part(a);
    const State first = load_state(item, 0);
    const State both = loop::reduce_merge(body_, item.reduction->op, first, second);
    for (size_t c = 0; c < both.size(); ++c) store(item.state[c], 0, both[c]);
  }
  select_part(nullptr);
}

void Accumulators::advance(Item& item, int part, Value* condition) {
  std::vector<Val> operands;
  for (int32_t id : item.reduction->operands) operands.push_back(body_.value(id));
  const State old = load_state(item, part);
  State next = loop::reduce_step(body_, item.reduction->op, old, operands);
  for (size_t c = 0; c < next.size(); ++c) {
    if (is_shared(item.state[c])) {
      item.pending[c] = next[c];
      continue;
    }
    if (layout_.lanes_are_points && body_.mask()) {
      const Val mask = body_.add_lanes(DType::Bool, {body_.mask(), nullptr, layout_.count, body_.level()});
      next[c] = body_.select(mask, next[c], old[c]);
    }
    if (condition) next[c] = chosen(condition, next[c], old[c], item.state[c].count);
    store(item.state[c], part, next[c]);
  }
}

// One condition for all lanes.
Val Accumulators::chosen(Value* condition, Val a, Val b, int count) {
  auto& builder = body_.builder();
  const Lanes x = body_.widened(a, count), y = body_.widened(b, count);
  Lanes out;
  out.count = count;
  out.level = body_.level();
  out.re = builder.CreateSelect(condition, x.re, y.re);
  if (x.im) out.im = builder.CreateSelect(condition, x.im, y.im);
  return body_.add_lanes(a.dtype, out);
}

void Accumulators::step(int part, Value* condition) {
  for (Item& item : reductions_) advance(item, part, condition);
}

void Accumulators::scan(int number, int part) {
  Item& item = scans_[number];
  advance(item, part, nullptr);
  State state = load_state(item, part);
  for (size_t c = 0; c < state.size(); ++c)
    if (is_shared(item.state[c])) state[c] = item.pending[c];
  publish(item, state);
}

void Accumulators::end_step() {
  if (in_memory_) return;
  for (auto* list : {&reductions_, &scans_})
    for (Item& item : *list)
      for (size_t c = 0; c < item.state.size(); ++c)
        if (item.state[c].shared)
          body_.builder().CreateStore(body_.lanes(item.pending[c]).re, item.state[c].shared);
}

void Accumulators::spill() {
  if (in_memory_) return;
  for (Item& item : reductions_)
    for (const Slot& slot : item.state)
      for (int p = 0; p < layout_.parts; ++p) {
        const Val v = load(slot, p);
        in_memory_ = true;
        store(slot, p, v);
        in_memory_ = false;
      }
  in_memory_ = true;
}

void Accumulators::publish(const Item& item, const State& state) {
  const State results = loop::reduce_result(body_, item.reduction->op, state);
  for (size_t n = 0; n < results.size(); ++n) body_.set_value(item.reduction->results[n], results[n]);
}

void Accumulators::results(int part) {
  for (const Item& item : reductions_) {
    const State mine = load_state(item, part);
    publish(item, layout_.exchange ? layout_.exchange->broadcast(mine) : mine);
  }
}

State lanes_of(LaneOps& ops, const State& s, int from, int count) {
  auto& b = ops.builder();
  State out;
  for (Val v : s) {
    Lanes l = ops.lanes(v);
    if (l.count == 1) {  // the same in every lane
      out.push_back(v);
      continue;
    }
    const auto take = [&](Value* x) -> Value* {
      if (count == 1) return b.CreateExtractElement(x, static_cast<uint64_t>(from));
      std::vector<int> lanes;
      for (int n = 0; n < count; ++n) lanes.push_back(from + n);
      return b.CreateShuffleVector(x, lanes);
    };
    l.re = take(l.re);
    if (l.im) l.im = take(l.im);
    l.count = count;
    out.push_back(ops.add_lanes(v.dtype, l));
  }
  return out;
}

State merge_lanes(LaneOps& ops, State s, const Exchange::Merge& merge) {
  int count = 1;
  for (Val v : s) count = std::max(count, ops.lanes(v).count);
  for (int n = count / 2; n > 0; n /= 2) s = merge(lanes_of(ops, s, 0, n), lanes_of(ops, s, n, n));
  return s;
}

State Accumulators::tree(std::vector<State> states, const Exchange::Merge& merge_pair,
                         const std::function<State(const State&)>& with_none, bool commutes) {
  size_t count = states.size();  // those of the parts past it are of no points
  for (size_t n = std::max<size_t>(count, static_cast<size_t>(layout_.all_parts)) / 2; n > 0; n /= 2) {
    for (size_t p = 0; p < std::min(n, count); ++p)
      states[p] = p + n < count ? merge_pair(states[p], states[p + n]) : with_none(states[p]);
    count = std::min(n, count);
  }
  if (layout_.exchange) return layout_.exchange->reduce(states[0], merge_pair, commutes);
  return layout_.lanes_are_points ? merge_lanes(body_, states[0], merge_pair) : states[0];
}

namespace {
// Bits aside that no number has.
bool merges_both_ways(loop::ReduceOp op) {
  return op == loop::ReduceOp::Sum || op == loop::ReduceOp::Prod || op == loop::ReduceOp::Any ||
         op == loop::ReduceOp::All;
}
}  // namespace

void Accumulators::merge() {
  for (const Item& item : reductions_) {
    std::vector<State> states;
    for (int p = 0; p < layout_.parts; ++p) {
      states.push_back(load_state(item, p));
      if (layout_.counts == Counts::EachVector) continue;
      for (Val& v : states.back()) v = body_.add_lanes(v.dtype, body_.widened(v, layout_.count));
    }
    const loop::ReduceOp op = item.reduction->op;
    const auto unchanged = [](const State& s) { return s; };
    if (!loop::merges_by_rescaling(op)) {
      publish(
          item,
          tree(
              states, [&](const State& a, const State& b) { return loop::reduce_merge(body_, op, a, b); },
              [&](const State& s) { return loop::reduce_with_none(body_, op, s); }, merges_both_ways(op)));
      continue;
    }
    std::vector<State> maxima, sums;
    for (const State& s : states) maxima.push_back({s[0]});
    const Val max = tree(
        maxima, [&](const State& a, const State& b) { return State{body_.maximum(a[0], b[0])}; }, unchanged,
        false)[0];
    for (const State& s : states) sums.push_back({loop::reduce_rescale(body_, s, max)});
    const Val sum = tree(
        sums, [&](const State& a, const State& b) { return State{body_.add(a[0], b[0])}; }, unchanged,
        true)[0];
    publish(item, {max, sum});
  }
}

}  // namespace fl::codegen
