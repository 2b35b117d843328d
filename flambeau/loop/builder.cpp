#include "flambeau/loop/builder.h"

#include <algorithm>

#include "flambeau/base/error.h"
#include "flambeau/loop/constant.h"
#include "flambeau/loop/evaluate.h"
#include "flambeau/loop/expansion.h"
#include "flambeau/loop/reduce.h"
#include "flambeau/loop/simplify_kernel.h"

namespace fl::loop {
namespace {

// Everything that decides what the instruction gives.
std::string key_of(const Inst& i) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {}", static_cast<int>(i.kind), static_cast<int>(i.op),
                     static_cast<int>(i.dtype), i.a, i.b, i.c, i.slot, i.index.str(),
                     is_integral(i.dtype, true) ? std::to_string(i.integer) : "",
                     is_integral(i.dtype, true) ? std::string()
                                                : fmt::format("{:a} {:a}", i.number.real(), i.number.imag()));
}

}  // namespace

Builder::Builder(std::string name) { kernel_.name = std::move(name); }

int Builder::add_buffer(std::string name, DType dtype, bool written) {
  kernel_.buffers.push_back({std::move(name), dtype, written});
  return static_cast<int>(kernel_.buffers.size()) - 1;
}

int Builder::add_param(DType dtype) {
  kernel_.params.push_back(dtype);
  return static_cast<int>(kernel_.params.size()) - 1;
}

void Builder::add_size(const Expr& symbol) {
  FL_CHECK(symbol.is_symbol(), ValueError, "expected the symbol of a size, got {}", symbol.str());
  if (std::find(kernel_.sizes.begin(), kernel_.sizes.end(), symbol) == kernel_.sizes.end())
    kernel_.sizes.push_back(symbol);
}

void Builder::set_outer(std::vector<Range> outer) { kernel_.outer = std::move(outer); }

void Builder::begin_stage(std::vector<Range> inner) {
  if (!kernel_.stages.empty()) {
    if (stage().inner.empty()) before_.merge(here_);
    here_.clear();
    for (const Store& s : stage().stores) forget_loads(s.buffer);
  }
  kernel_.stages.emplace_back().inner = std::move(inner);
}

// What was loaded from the buffer before may no longer be there.
void Builder::forget_loads(int buffer) {
  std::erase_if(before_, [&](const auto& entry) {
    const Inst& i = kernel_.insts[entry.second];
    return i.kind == InstKind::Load && i.slot == buffer;
  });
}

Stage& Builder::stage() {
  FL_CHECK(!kernel_.stages.empty(), ValueError, "kernel {}: begin_stage() comes before instructions",
           kernel_.name);
  return kernel_.stages.back();
}

Val Builder::append(Inst inst, bool shared) {
  std::string key;
  if (shared) {
    key = key_of(inst);
    for (const auto* table : {&here_, &before_})
      if (auto it = table->find(key); it != table->end()) return {it->second, inst.dtype};
  }
  const auto id = static_cast<int32_t>(kernel_.insts.size());
  const Val out{id, inst.dtype};
  kernel_.insts.push_back(std::move(inst));
  stage().insts.push_back(id);
  if (shared) here_.emplace(std::move(key), id);
  return out;
}

bool Builder::is_constant(Val v) const { return v.id >= 0 && kernel_.insts[v.id].kind == InstKind::Constant; }

Val Builder::emit(ScalarOp op, DType dtype, Val a, Val b, Val c) {
  Inst i;
  i.op = op;
  i.dtype = result_dtype(op, dtype, a.dtype, b.dtype);
  const Val operands[] = {a, b, c};
  const int count = arity(op);
  bool all_constant = true;
  for (int n = 0; n < count; ++n) all_constant = all_constant && is_constant(operands[n]);
  if (all_constant) {
    if (auto v = expand_operation(*this, op, a, b)) return *v;
    ScalarBits bits[3];
    for (int n = 0; n < count; ++n) bits[n] = constant_bits(kernel_.insts[operands[n].id]);
    const DType operand = op == ScalarOp::Select ? b.dtype : a.dtype;
    return append(constant_inst(i.dtype, evaluate(op, i.dtype, operand, bits[0], bits[1], bits[2])), true);
  }
  if (op == ScalarOp::Select && is_constant(a)) return kernel_.insts[a.id].integer ? b : c;
  if (op == ScalarOp::Select && b.id == c.id) return b;
  if ((op == ScalarOp::Cast || op == ScalarOp::Bitcast) && i.dtype == a.dtype) return a;
  i.a = a.id;
  if (count > 1) i.b = b.id;
  if (count > 2) i.c = c.id;
  return append(std::move(i), true);
}

Val Builder::constant(DType dtype, Literal value) {
  return append(constant_inst(dtype, ScalarBits::of(dtype, value)), true);
}

Val Builder::index(const Expr& e) {
  if (e.is_const()) return constant(DType::Int64, e.value());
  if (e.is_symbol() && value_of(e) >= 0) return {value_of(e), DType::Int64};
  Inst i;
  i.kind = InstKind::Index;
  i.op = ScalarOp::Index;
  i.dtype = DType::Int64;
  i.index = e;
  return append(std::move(i), true);
}

Val Builder::param(int slot) {
  Inst i;
  i.kind = InstKind::Param;
  i.dtype = kernel_.params.at(slot);
  i.slot = slot;
  return append(std::move(i), true);
}

Val Builder::load(int buffer, const Expr& index, Val mask) {
  Inst i;
  i.kind = InstKind::Load;
  i.op = ScalarOp::Load;
  i.dtype = kernel_.buffers.at(buffer).dtype;
  i.slot = buffer;
  i.index = index;
  i.a = mask.id;
  if (is_constant(mask)) {
    if (!kernel_.insts[mask.id].integer) return constant(i.dtype, 0);
    i.a = -1;
  }
  return append(std::move(i), true);
}

std::vector<Val> Builder::combine(ReduceOp op, const std::vector<Val>& operands, InstKind kind) {
  Stage& s = stage();
  std::vector<Reduction>& list = kind == InstKind::Reduced ? s.reductions : s.scans;
  Reduction r{op, {}, {}};
  for (Val v : operands) r.operands.push_back(v.id);
  std::vector<Val> out;
  for (const Reduction& old : list)
    if (old.op == op && old.operands == r.operands) {
      for (int32_t id : old.results) out.push_back({id, kernel_.insts[id].dtype});
      return out;
    }
  for (DType d : state_dtypes(op, operands.at(0).dtype)) {
    Inst i;
    i.kind = kind;
    i.dtype = d;
    i.a = static_cast<int32_t>(list.size());
    i.b = static_cast<int32_t>(out.size());
    const auto id = static_cast<int32_t>(kernel_.insts.size());
    kernel_.insts.push_back(i);
    if (kind == InstKind::Scanned) s.insts.push_back(id);
    r.results.push_back(id);
    out.push_back({id, d});
  }
  list.push_back(std::move(r));
  return out;
}

std::vector<Val> Builder::reduce(ReduceOp op, const std::vector<Val>& operands) {
  return combine(op, operands, InstKind::Reduced);
}

std::vector<Val> Builder::scan(ReduceOp op, const std::vector<Val>& operands) {
  return combine(op, operands, InstKind::Scanned);
}

void Builder::store(int buffer, const Expr& index, Val value, StoreMode mode, Val mask) {
  if (is_constant(mask)) {
    if (!kernel_.insts[mask.id].integer) return;
    mask = {};
  }
  stage().stores.push_back({buffer, index, value.id, mode, mask.id});
}

void Builder::check(Val condition, Val value, std::string message) {
  if (is_constant(condition) && kernel_.insts[condition.id].integer) return;
  stage().asserts.push_back({condition.id, value.id, std::move(message)});
}

Kernel Builder::finish(VectorAxis vector) {
  kernel_.vector = vector;
  drop_dead_code(kernel_);
  collect_sizes(kernel_);
  verify(kernel_);
  before_.clear();
  here_.clear();
  return std::move(kernel_);
}

}  // namespace fl::loop
