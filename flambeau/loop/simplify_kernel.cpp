#include "flambeau/loop/simplify_kernel.h"

#include <algorithm>

namespace fl::loop {
namespace {

class DeadCode {
 public:
  explicit DeadCode(Kernel& k) : k_(k), number_(k.insts.size(), -1), live_(k.insts.size(), false) {}

  void run() {
    for (size_t s = k_.stages.size(); s-- > 0;) mark(k_.stages[s]);
    for (Stage& stage : k_.stages) keep(stage);
    std::vector<Inst> insts(count_);
    for (size_t id = 0; id < k_.insts.size(); ++id)
      if (number_[id] >= 0) insts[number_[id]] = std::move(k_.insts[id]);
    k_.insts = std::move(insts);
    for (Inst& i : k_.insts) rename(i);
    for (Stage& stage : k_.stages) rename(stage);
    std::erase_if(k_.stages, [](const Stage& s) {
      return s.stores.empty() && s.asserts.empty() && s.reductions.empty() &&
             (s.insts.empty() || !s.inner.empty());
    });
  }

 private:
  void use(int32_t id) {
    if (id >= 0) live_[id] = true;
  }
  void use(const Expr& e) {
    for (const Expr& s : sym::symbols_of(e)) use(value_of(s));
  }
  bool any_live(const std::vector<int32_t>& ids) const {
    return std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return live_[id]; });
  }
  // Users come after what they use, so one walk backwards sees every use of an instruction before itself.
  void mark(Stage& stage) {
    for (const Store& s : stage.stores) {
      use(s.value);
      use(s.mask);
      use(s.index);
    }
    for (const Assert& a : stage.asserts) {
      use(a.condition);
      use(a.value);
    }
    for (const Reduction& r : stage.reductions)
      if (any_live(r.results))
        for (int32_t id : r.operands) use(id);
    for (size_t n = stage.insts.size(); n-- > 0;) {
      const int32_t id = stage.insts[n];
      const Inst& i = k_.insts[id];
      if (i.kind == InstKind::Scanned && any_live(stage.scans[i.a].results))
        for (int32_t operand : stage.scans[i.a].operands) use(operand);
      if (!live_[id]) continue;
      if (i.kind == InstKind::Operation) {
        use(i.a);
        use(i.b);
        use(i.c);
      } else if (i.kind == InstKind::Load) {
        use(i.a);
      }
      use(i.index);
    }
    for (const Range& r : stage.inner) use(r.size);
  }
  void keep(Stage& stage) {
    drop(stage.reductions);
    drop(stage.scans);
    std::erase_if(stage.insts, [&](int32_t id) { return !live_[id]; });
    for (int32_t id : stage.insts) number_[id] = count_++;
    for (const Reduction& r : stage.reductions)
      for (int32_t id : r.results) number_[id] = count_++;
  }
  void drop(std::vector<Reduction>& list) {
    std::erase_if(list, [&](const Reduction& r) { return !any_live(r.results); });
    for (size_t n = 0; n < list.size(); ++n)
      for (int32_t id : list[n].results) {
        live_[id] = true;  // all results of a live reduction stay
        k_.insts[id].a = static_cast<int32_t>(n);
      }
  }

  void rename(int32_t& id) const {
    if (id >= 0) id = number_[id];
  }
  void rename(std::vector<int32_t>& ids) const {
    for (int32_t& id : ids) rename(id);
  }
  void rename(Expr& e) const {
    bool has_value = false;
    for (const Expr& s : sym::symbols_of(e)) has_value = has_value || value_of(s) >= 0;
    if (!has_value) return;
    e = sym::substitute(e, [&](const Expr& s) -> std::optional<Expr> {
      if (!s.is_symbol() || value_of(s) < 0) return std::nullopt;
      return symbol_of(number_[value_of(s)]);
    });
  }
  void rename(Inst& i) const {
    if (i.kind == InstKind::Operation) {
      rename(i.a);
      rename(i.b);
      rename(i.c);
    } else if (i.kind == InstKind::Load) {
      rename(i.a);
    }
    rename(i.index);
  }
  void rename(Stage& stage) const {
    for (Range& r : stage.inner) rename(r.size);
    rename(stage.insts);
    for (auto* list : {&stage.reductions, &stage.scans})
      for (Reduction& r : *list) {
        rename(r.operands);
        rename(r.results);
      }
    for (Store& s : stage.stores) {
      rename(s.value);
      rename(s.mask);
      rename(s.index);
    }
    for (Assert& a : stage.asserts) {
      rename(a.condition);
      rename(a.value);
    }
  }

  Kernel& k_;
  std::vector<int32_t> number_;
  std::vector<bool> live_;
  int32_t count_ = 0;
};

}  // namespace

void drop_dead_code(Kernel& k) { DeadCode(k).run(); }

void collect_sizes(Kernel& k) {
  std::vector<Expr> variables;
  const auto add = [&](const Expr& e) {
    for (const Expr& s : sym::symbols_of(e))
      if (value_of(s) < 0 && std::find(variables.begin(), variables.end(), s) == variables.end() &&
          std::find(k.sizes.begin(), k.sizes.end(), s) == k.sizes.end())
        k.sizes.push_back(s);
  };
  for (const Range& r : k.outer) variables.push_back(r.variable);
  for (const Stage& stage : k.stages)
    for (const Range& r : stage.inner) variables.push_back(r.variable);
  for (const Range& r : k.outer) add(r.size);
  for (const Stage& stage : k.stages) {
    for (const Range& r : stage.inner) add(r.size);
    for (int32_t id : stage.insts) add(k.insts[id].index);
    for (const Store& s : stage.stores) add(s.index);
  }
}

}  // namespace fl::loop
