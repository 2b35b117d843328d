// Hooks in order of registration, each with a handle that removes it.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace fl {

/// Removes one hook. Safe to call twice, and after the tensor or node is gone.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  void remove() {
    if (remove_) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};

template <class F>
class HookList {
 public:
  HookHandle add(F f) {
    if (!entries_) entries_ = std::make_shared<Entries>();
    const int64_t id = entries_->next_id++;
    entries_->list.emplace_back(id, std::move(f));
    return HookHandle([weak = std::weak_ptr<Entries>(entries_), id] {
      if (auto e = weak.lock()) std::erase_if(e->list, [&](const auto& p) { return p.first == id; });
    });
  }
  bool empty() const { return !entries_ || entries_->list.empty(); }
  /// Calls visit(hook) for each, in order.
  template <class V>
  void each(V&& visit) const {
    if (entries_)
      for (const auto& [id, f] : entries_->list) visit(f);
  }
  /// Removes all.
  void clear() {
    if (entries_) entries_->list.clear();
  }
  /// A copy, so that a hook may add and remove hooks.
  std::vector<F> snapshot() const {
    std::vector<F> r;
    if (entries_)
      for (const auto& [id, f] : entries_->list) r.push_back(f);
    return r;
  }

 private:
  struct Entries {
    int64_t next_id = 0;
    std::vector<std::pair<int64_t, F>> list;
  };
  std::shared_ptr<Entries> entries_;
};

}  // namespace fl
