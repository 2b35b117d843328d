#include "flambeau/autograd/meta.h"

#include "flambeau/autograd/accumulate.h"
#include "flambeau/autograd/autograd.h"
#include "flambeau/autograd/view.h"
#include "flambeau/op/dispatch.h"

namespace fl {

ViewStep::~ViewStep() {
  while (previous && previous->use_count() == 1) {
    Ref<ViewStep> next = std::move(previous->previous);
    previous = std::move(next);
  }
}

AutogradMeta::~AutogradMeta() {
  if (retains_grad && grad_fn) {
    std::lock_guard lock(grad_fn->mutex());
    if (NodeHooks* h = grad_fn->hooks())
      std::erase_if(h->retain, [&](const NodeHooks::Retain& r) { return r.meta == this; });
  }
  release_iteratively(std::move(grad_fn));
}

AutogradMeta& make_meta(const Tensor& t) {
  if (!t.impl()->autograd) t.impl()->autograd = make_ref<AutogradMeta>();
  return *meta(t);
}

int64_t version(const Tensor& t) { return t.storage() ? t.storage()->version() : 0; }

Ref<Node> grad_fn(const Tensor& t) {
  AutogradMeta* m = meta(t);
  if (!m) return nullptr;
  if (m->view) refresh_view(t);
  return m->grad_fn;
}

int output_nr(const Tensor& t) { return meta(t) ? meta(t)->output_nr : 0; }

Edge gradient_edge(const Tensor& t) {
  if (!t.defined() || !t.impl()->autograd) return {};
  if (Ref<Node> f = grad_fn(t)) return {std::move(f), meta(t)->output_nr};
  if (!meta(t)->requires_grad) return {};
  return {accumulator(t), 0};
}

void move_retain(AutogradMeta& m, Node* old_node) {
  if (!m.retains_grad) return;
  if (old_node) {
    std::lock_guard lock(old_node->mutex());
    if (NodeHooks* h = old_node->hooks())
      std::erase_if(h->retain, [&](const NodeHooks::Retain& r) { return r.meta == &m; });
  }
  if (!m.grad_fn) return;
  std::lock_guard lock(m.grad_fn->mutex());
  m.grad_fn->make_hooks().retain.push_back({m.output_nr, &m});
}

namespace {
std::function<void(const Ref<Node>&)>& node_observer() {
  static auto* observer = new std::function<void(const Ref<Node>&)>;
  return *observer;
}
std::atomic<bool> observes_nodes{false};
}  // namespace

void set_node_observer(std::function<void(const Ref<Node>&)> observer) {
  observes_nodes = false;
  node_observer() = std::move(observer);
  observes_nodes = static_cast<bool>(node_observer());
}

void set_history(const Tensor& t, Ref<Node> node, int output_nr) {
  if (observes_nodes.load(std::memory_order_relaxed) && output_nr == 0) node_observer()(node);
  AutogradMeta& m = make_meta(t);
  Ref<Node> old = std::exchange(m.grad_fn, std::move(node));
  m.output_nr = output_nr;
  m.requires_grad = false;
  move_retain(m, old.get());
  release_iteratively(std::move(old));
}

Tensor shallow_copy(const Tensor& t) {
  auto impl = make_ref<TensorImpl>();
  impl->spec = t.spec();
  impl->storage = t.impl()->storage;
  impl->trace = t.impl()->trace;
  impl->inference = t.impl()->inference;
  return Tensor(std::move(impl));
}

bool Tensor::requires_grad() const {
  if (!impl_ || !impl_->autograd) return false;
  const AutogradMeta* m = meta(*this);
  if (m->requires_grad || !m->view) return m->requires_grad || m->grad_fn;
  // A view of a tensor that came to require gradients later does so, too, though none reach it or its base.
  return grad_fn(*this) || (m->view->base.requires_grad() && is_differentiable(dtype()));
}

Tensor& Tensor::set_requires_grad(bool value) {
  FL_CHECK(defined(), RuntimeError, "set_requires_grad: expected a tensor, got an undefined one");
  if (!is_leaf()) {
    FL_CHECK(value, RuntimeError,
             "you can only change requires_grad flags of leaf variables. If you want to use a computed "
             "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    return *this;
  }
  if (!value && !meta(*this)) return *this;
  FL_CHECK(!value || is_differentiable(dtype()), RuntimeError,
           "only Tensors of floating point dtype can require gradients");
  FL_CHECK(!value || !impl_->inference || dispatch_state().inference, RuntimeError,
           "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  make_meta(*this).requires_grad = value;
  return *this;
}

Tensor Tensor::grad() const { return impl_ && meta(*this) ? meta(*this)->grad : Tensor(); }

void Tensor::set_grad(const Tensor& g) const {
  if (Tracer* tracer = dispatch_state().tracer) tracer->before_grad_change(*this);
  if (!g.defined()) {
    if (meta(*this)) meta(*this)->grad = Tensor();
    return;
  }
  FL_CHECK(!g.is_same(*this), RuntimeError, "can't assign Variable as its own grad");
  FL_CHECK(g.dtype() == dtype(), RuntimeError,
           "attempting to assign a gradient with dtype '{}' to a tensor with dtype '{}'. The gradient must "
           "match the tensor's dtype.",
           name(g.dtype()), name(dtype()));
  FL_CHECK(g.device() == device(), RuntimeError,
           "attempting to assign a gradient located on device with device type '{}' to a tensor located on "
           "device with type '{}'. Please ensure that the gradient and the tensor are on the same device",
           g.device().str(), device().str());
  bool same = g.dim() == dim();
  for (int i = 0; same && i < dim(); ++i) same = g.sizes()[i] == sizes()[i];
  FL_CHECK(same, RuntimeError,
           "attempting to assign a gradient of size '{}' to a tensor of size '{}'. Please ensure that the "
           "gradient and the tensor are the same size",
           to_string(g.sizes()), to_string(sizes()));
  make_meta(*this).grad = g;
}

bool Tensor::is_leaf() const { return !impl_ || !meta(*this) || !grad_fn(*this); }

void detach_in_place(const Tensor& t) {
  AutogradMeta* m = meta(t);
  if (!m) return;
  FL_CHECK(!m->view, RuntimeError, "Can't detach views in-place. Use detach() instead.");
  Ref<Node> old = std::exchange(m->grad_fn, nullptr);
  m->requires_grad = false;
  m->output_nr = 0;
  move_retain(*m, old.get());
  release_iteratively(std::move(old));
}

HookHandle register_hook(const Tensor& t, GradHook hook) {
  FL_CHECK(t.requires_grad(), RuntimeError,
           "cannot register a hook on a tensor that doesn't require gradient");
  Ref<Node> node = grad_fn(t);
  AutogradMeta& m = *meta(t);
  if (!node) return m.leaf_hooks.add(std::move(hook));
  auto& lists = node->make_hooks().tensors;
  for (auto& l : lists)
    if (l.input == m.output_nr) return l.hooks.add(std::move(hook));
  lists.push_back({m.output_nr, {}});
  return lists.back().hooks.add(std::move(hook));
}

HookHandle register_post_accumulate_grad_hook(const Tensor& t, std::function<void(const Tensor&)> hook) {
  FL_CHECK(t.requires_grad(), RuntimeError,
           "cannot register a hook on a tensor that doesn't require gradient");
  FL_CHECK(t.is_leaf(), RuntimeError, "post accumulate grad hooks cannot be registered on non-leaf tensors");
  return meta(t)->post_accumulate.add(std::move(hook));
}

void retain_grad(const Tensor& t) {
  FL_CHECK(t.requires_grad(), RuntimeError, "can't retain_grad on Tensor that has requires_grad=False");
  AutogradMeta& m = *meta(t);
  if (t.is_leaf() || m.retains_grad) return;
  m.retains_grad = true;
  move_retain(m, nullptr);
}

bool retains_grad(const Tensor& t) { return meta(t) && meta(t)->retains_grad; }

}  // namespace fl
