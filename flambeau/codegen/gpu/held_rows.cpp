#include "flambeau/codegen/gpu/held_rows.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "flambeau/codegen/gpu/grid_plan.h"
#include "flambeau/loop/order.h"

namespace fl::codegen {
namespace {

using loop::Inst;
using loop::InstKind;
using loop::Stage;
using sym::Expr;

class Finder {
 public:
  explicit Finder(const loop::Kernel& k)
      : k_(k), same_(k.insts.size(), -1), stage_of_(k.insts.size(), -1), varies_(k.insts.size()) {}

  std::optional<HeldRows> run() {
    for (const Stage& stage : k_.stages) {
      if (stage.inner.empty()) continue;
      if (!is_cut(k_, stage) || stage.inner.size() != 1) return std::nullopt;
      if (!first_)
        first_ = &stage;
      else if (!(stage.inner[0].size == first_->inner[0].size))
        return std::nullopt;
    }
    if (!first_) return std::nullopt;
    out_.row = first_->inner[0].size;
    out_.known_before.assign(k_.insts.size(), -1);
    for (size_t s = 0; s < k_.stages.size(); ++s)
      if (!k_.stages[s].inner.empty()) add(k_.stages[s], static_cast<int>(s));
    for (int32_t id : kept_) out_.words += (size_of(k_.insts[id].dtype) + 3) / 4;
    return std::move(out_);
  }

 private:
  int32_t same(int32_t id) const { return id >= 0 && same_[id] >= 0 ? same_[id] : id; }

  // Over the variable of the first stage, and the first ones of equal values.
  Expr common(const Stage& stage, const Expr& index) const {
    return sym::substitute(index, [&](const Expr& s) -> std::optional<Expr> {
      if (s == stage.inner[0].variable) return first_->inner[0].variable;
      const int32_t id = loop::value_of(s);
      return id >= 0 && same(id) != id ? std::optional(loop::symbol_of(same(id))) : std::nullopt;
    });
  }

  bool depends(const Stage& stage, const Inst& i) const {
    const auto of = [&](int32_t id) { return id >= 0 && varies_[id]; };
    if (i.kind == InstKind::Operation || i.kind == InstKind::Load)
      if (of(i.a) || of(i.b) || of(i.c)) return true;
    if (i.kind != InstKind::Index && i.kind != InstKind::Load) return false;
    for (const Expr& s : sym::symbols_of(i.index))
      if (s == stage.inner[0].variable || of(loop::value_of(s))) return true;
    return false;
  }

  // Equal for values that are the same at every point.
  std::string key(const Stage& stage, int32_t id) const {
    const Inst& i = k_.insts[id];
    if (i.kind == InstKind::Load && k_.buffers[i.slot].written) return fmt::format("value {}", id);
    std::string out =
        fmt::format("{} {} {} {} {} {} {} {}", static_cast<int>(i.kind), static_cast<int>(i.op),
                    static_cast<int>(i.dtype), same(i.a), same(i.b), same(i.c), i.slot, i.integer);
    if (i.kind == InstKind::Constant) out += fmt::format(" {:a} {:a}", i.number.real(), i.number.imag());
    if (i.kind == InstKind::Load || i.kind == InstKind::Index) out += " " + common(stage, i.index).str();
    return out;
  }

  void add(const Stage& stage, int number) {
    for (int32_t id : stage.insts) {
      varies_[id] = depends(stage, k_.insts[id]);
      stage_of_[id] = number;
      const auto [it, fresh] = first_with_.emplace(key(stage, id), id);
      same_[id] = it->second;
      if (stage_of_[it->second] != number) out_.known_before[id] = it->second;
    }
    out_.cost += loop::point_cost(k_, stage);
    for (int32_t id : stage.insts) {
      if (out_.known_before[id] < 0) {
        use_operands(id);
        continue;
      }
      const int64_t cost = loop::operation_cost(k_.insts[id]);
      out_.cost -= cost;
      if (varies_[id] && (k_.insts[id].kind == InstKind::Load || cost > 4)) out_.repeats = true;
    }
    for (const loop::Reduction& r : stage.reductions)
      for (int32_t id : r.operands) use(id);
    for (const loop::Store& s : stage.stores) {
      use(s.value);
      use(s.mask);
      use_symbols(s.index);
    }
    for (const loop::Assert& a : stage.asserts) {
      use(a.condition);
      use(a.value);
    }
  }

  void use(int32_t id) {
    if (id >= 0 && varies_[id] && out_.known_before[id] >= 0) kept_.insert(out_.known_before[id]);
  }
  void use_symbols(const Expr& e) {
    for (const Expr& s : sym::symbols_of(e)) use(loop::value_of(s));
  }
  void use_operands(int32_t id) {
    const Inst& i = k_.insts[id];
    if (i.kind == InstKind::Operation || i.kind == InstKind::Load)
      for (int32_t operand : {i.a, i.b, i.c}) use(operand);
    if (i.kind == InstKind::Index || i.kind == InstKind::Load) use_symbols(i.index);
  }

  const loop::Kernel& k_;
  HeldRows out_;
  const Stage* first_ = nullptr;
  std::vector<int32_t> same_;
  std::vector<int> stage_of_;
  std::vector<bool> varies_;
  std::map<std::string, int32_t> first_with_;
  std::set<int32_t> kept_;
};

}  // namespace

std::optional<HeldRows> find_held_rows(const loop::Kernel& k) { return Finder(k).run(); }

}  // namespace fl::codegen
