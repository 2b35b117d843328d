#include "flambeau/autograd/accumulate.h"

#include <limits>

#include "flambeau/autograd/foreign_gradient.h"
#include "flambeau/autograd/gradient_ops.h"
#include "flambeau/op/dispatch.h"

namespace fl {
namespace {

struct MutexPool {
  std::mutex mutexes[64];
  std::mutex& operator()(const AutogradMeta* m) { return mutexes[reinterpret_cast<uintptr_t>(m) / 64 % 64]; }
};
/// Guards `accumulator` of every AutogradMeta. Nothing is called under it.
std::mutex& accumulator_mutex(const AutogradMeta* m) {
  static MutexPool pool;
  return pool(m);
}
/// Guards every leaf's `.grad` while it is added to; operators run under it.
std::mutex& grad_mutex(const AutogradMeta* m) {
  static MutexPool pool;
  return pool(m);
}

/// True if .grad may be this very tensor: nobody else will see it change.
bool can_take(const Tensor& g, const Tensor& leaf) {
  return gradient_ops::is_unshared(g) && gradient_ops::has_gradient_layout(g, leaf);
}

void add_to_grad(const Tensor& leaf, AutogradMeta& m, Tensor&& g) {
  const bool recording = dispatch_state().grad_enabled;
  if (is_foreign_gradient(g) || is_foreign_gradient(m.grad)) {
    m.grad = sum_of_foreign_gradients(m.grad, g);
  } else if (!m.grad.defined()) {
    m.grad = !recording && can_take(g, leaf) ? shallow_copy(g) : gradient_ops::clone_for(g, leaf);
  } else if (recording) {
    m.grad = gradient_ops::add(m.grad, g);
  } else {
    gradient_ops::add.in_place(m.grad, g);
  }
}

}  // namespace

AccumulateGrad::AccumulateGrad(const Tensor& leaf)
    : SimpleNode(std::numeric_limits<uint64_t>::max()), leaf_(leaf) {}

AccumulateGrad::~AccumulateGrad() {
  AutogradMeta* m = meta(leaf_);
  std::lock_guard lock(accumulator_mutex(m));
  if (m->accumulator == this) m->accumulator = nullptr;
}

Tensors AccumulateGrad::apply(Tensors&& grads) {
  Tensor g = std::move(grads[0]);
  if (!g.defined()) return {};
  AutogradMeta& m = *meta(leaf_);
  if (Tracer* tracer = dispatch_state().tracer) tracer->before_grad_change(leaf_, true);
  {
    std::lock_guard lock(grad_mutex(&m));
    add_to_grad(leaf_, m, std::move(g));
  }
  for (const auto& hook : m.post_accumulate.snapshot()) hook(leaf_);
  return {};
}

Ref<Node> accumulator(const Tensor& leaf) {
  AutogradMeta* m = meta(leaf);
  std::lock_guard lock(accumulator_mutex(m));
  if (m->accumulator && m->accumulator->try_retain()) return Ref<Node>::adopt(m->accumulator);
  auto node = make_ref<AccumulateGrad>(leaf);
  m->accumulator = node.get();
  return node;
}

}  // namespace fl
