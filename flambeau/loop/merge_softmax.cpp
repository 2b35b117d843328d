#include "flambeau/loop/merge_softmax.h"

#include <optional>

#include "flambeau/loop/simplify_kernel.h"

namespace fl::loop {
namespace {

class Merger {
 public:
  explicit Merger(Kernel& k) : k_(k) {}

  void run() {
    for (size_t later = 1; later < k_.stages.size(); ++later)
      for (size_t n = 0; n < k_.stages[later].reductions.size();) {
        if (!merge(later, n)) ++n;
      }
    drop_dead_code(k_);
    verify(k_);
  }

 private:
  const Inst* operation(int32_t id, ScalarOp op) const {
    const Inst& i = k_.insts[id];
    return i.kind == InstKind::Operation && i.op == op ? &i : nullptr;
  }
  // The value behind products with 1.
  int32_t factor(int32_t id) const {
    const Inst* product = operation(id, ScalarOp::Mul);
    if (!product) return id;
    const auto is_one = [&](int32_t c) {
      return k_.insts[c].kind == InstKind::Constant && k_.insts[c].number == 1.0;
    };
    return is_one(product->a) ? factor(product->b) : is_one(product->b) ? factor(product->a) : id;
  }

  // Whether values of two stages are the same at every point.
  bool same(const Stage& s, int32_t a, const Stage& t, int32_t b) const {
    if (a == b) return true;
    if (a < 0 || b < 0) return false;
    const Inst &x = k_.insts[a], &y = k_.insts[b];
    if (x.kind != y.kind || x.dtype != y.dtype) return false;
    switch (x.kind) {
      case InstKind::Operation:
        return x.op == y.op && same(s, x.a, t, y.a) && same(s, x.b, t, y.b) && same(s, x.c, t, y.c);
      case InstKind::Constant:
        return x.integer == y.integer && x.number == y.number;
      case InstKind::Param:
        return x.slot == y.slot;
      case InstKind::Index:
        return same_index(s, x.index, t, y.index);
      case InstKind::Load:
        return x.slot == y.slot && !k_.buffers[x.slot].written && same(s, x.a, t, y.a) &&
               same_index(s, x.index, t, y.index);
      default:
        return false;
    }
  }
  // Values in an index have to be the very same ones.
  bool same_index(const Stage& s, const Expr& a, const Stage& t, const Expr& b) const {
    return a == sym::substitute(b, [&](const Expr& v) {
             return v == t.inner[0].variable ? std::optional(s.inner[0].variable) : std::nullopt;
           });
  }

  // Reduction n of a stage, where it is a sum of exponentials below the maximum of an earlier one.
  bool merge(size_t later, size_t n) {
    Stage& stage = k_.stages[later];
    const Reduction& sum = stage.reductions[n];
    if (sum.op != ReduceOp::Sum || stage.inner.size() != 1) return false;
    const Inst* exponential = operation(sum.operands[0], ScalarOp::Exp);
    const Inst* difference = exponential ? operation(exponential->a, ScalarOp::Sub) : nullptr;
    if (!difference) return false;
    const int32_t max = factor(difference->b);
    for (size_t before = 0; before < later; ++before) {
      Stage& first = k_.stages[before];
      if (first.inner.size() != 1 || !(first.inner[0].size == stage.inner[0].size)) continue;
      for (size_t m = 0; m < first.reductions.size(); ++m) {
        Reduction& r = first.reductions[m];
        if (r.op != ReduceOp::Max || r.results[0] != max || !same(first, r.operands[0], stage, difference->a))
          continue;
        r.op = ReduceOp::OnlineSoftmax;
        r.results.push_back(sum.results[0]);
        Inst& result = k_.insts[sum.results[0]];
        result.a = static_cast<int32_t>(m);
        result.b = 1;
        stage.reductions.erase(stage.reductions.begin() + static_cast<std::ptrdiff_t>(n));
        for (size_t other = n; other < stage.reductions.size(); ++other)
          for (int32_t id : stage.reductions[other].results) k_.insts[id].a = static_cast<int32_t>(other);
        return true;
      }
    }
    return false;
  }

  Kernel& k_;
};

}  // namespace

void merge_softmax(Kernel& k) { Merger(k).run(); }

}  // namespace fl::loop
