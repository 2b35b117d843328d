// Remembers recent results of a pure function of two expressions.
#pragma once
#include <memory>

#include "flambeau/sym/expr.h"

namespace fl::sym::detail {

/// Direct-mapped and of fixed size; belongs to one thread. Nodes live as long as the process, so their
/// addresses are keys.
template <class Result>
class PairMemo {
 public:
  /// The result of make(), now or at an earlier call with these expressions.
  template <class F>
  Result get(const Expr& a, const Expr& b, F&& make) {
    if (!slots_) slots_ = std::make_unique<Slot[]>(kSlots);
    const auto x = reinterpret_cast<uintptr_t>(a.node()), y = reinterpret_cast<uintptr_t>(b.node());
    Slot& s = slots_[((x >> 4) * 0x9E3779B97F4A7C15ull + (y >> 4) * 0xD6E8FEB86659FD93ull) >> (64 - kBits)];
    if (s.a == a.node() && s.b == b.node()) return s.result;
    // make() may come here again and fill the slot; the later result stays.
    Result r = make();
    s = {a.node(), b.node(), r};
    return r;
  }

 private:
  static constexpr int kBits = 10;
  static constexpr size_t kSlots = size_t{1} << kBits;
  struct Slot {
    const Node* a = nullptr;
    const Node* b = nullptr;
    Result result{};
  };
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace fl::sym::detail
