// Reference counting inside the object: one word a handle, no second allocation.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace fl {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) {}
  RefCounted& operator=(const RefCounted&) { return *this; }
  virtual ~RefCounted() = default;
  void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// For a pointer that doesn't keep the object alive: takes a reference unless the last one is gone. The
  /// caller sees to it that the destructor has not finished.
  bool try_retain() const {
    int64_t n = count_.load(std::memory_order_relaxed);
    while (n > 0)
      if (count_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    return false;
  }
  int64_t use_count() const { return count_.load(std::memory_order_relaxed); }

 private:
  mutable std::atomic<int64_t> count_{0};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* p) : p_(p) {
    if (p_) p_->retain();
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Ref(const Ref<U>& o) : Ref(static_cast<T*>(o.get())) {}
  ~Ref() {
    if (p_) p_->release();
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Ref& o) const { return p_ == o.p_; }
  /// Gives the count up to the caller (for tagged unions).
  T* leak() { return std::exchange(p_, nullptr); }
  /// Takes over a count that leak() gave up.
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }

 private:
  T* p_ = nullptr;
};

template <class T, class... A>
Ref<T> make_ref(A&&... a) {
  return Ref<T>(new T(std::forward<A>(a)...));
}

}  // namespace fl
