#include "flambeau/autograd/engine.h"

#include <atomic>
#include <queue>
#include <unordered_map>

#include "flambeau/autograd/gradient_ops.h"
#include "flambeau/autograd/meta.h"
#include "flambeau/op/dispatch.h"

namespace fl {
namespace {

/// One pass. Nodes are looked up by address, never listed in its order.
class Engine {
 public:
  explicit Engine(BackwardPass pass) : pass_(std::move(pass)), captured_(pass_.wanted.size()) {}
  Tensors run();
  bool is_wanted(const Node& n) const { return wants_all() || wanted(n); }
  bool is_reached(const Node& n) const { return states_.contains(&n) && is_wanted(n); }
  uint64_t number() const { return number_; }

 private:
  struct State {
    int waiting = 0;  ///< gradients that are still to come
    bool needed = false;
    Tensors grads;
    std::vector<std::pair<int, int>> captures;  ///< (input of the node, number of the wanted edge)
  };
  struct Ready {
    Ref<Node> node;
    uint64_t order;
    bool operator<(const Ready& o) const {
      if (node->sequence() != o.node->sequence()) return node->sequence() < o.node->sequence();
      return order > o.order;
    }
  };
  static uint64_t next_number() {
    static std::atomic<uint64_t> passes{0};
    return ++passes;
  }
  bool wants_all() const { return pass_.wanted.empty(); }
  bool wanted(const Node& n) const {
    auto it = states_.find(&n);
    return it != states_.end() && (it->second.needed || !it->second.captures.empty());
  }
  void count_dependencies();
  void mark_needed();
  void deliver(const Edge& e, Tensor&& g);
  void arrive(const Edge& e);
  void run_node(Node& node);
  void call(Node& node, Tensors grads);
  void run_tensor_hooks(Node& node, Tensors& grads);

  BackwardPass pass_;
  Tensors captured_;
  std::unordered_map<const Node*, State> states_;
  std::priority_queue<Ready> ready_;
  uint64_t order_ = 0;
  const uint64_t number_ = next_number();
};

thread_local const Engine* current_engine = nullptr;

/// Every node that the roots reach, with the number of edges that lead to it.
void Engine::count_dependencies() {
  std::vector<Node*> stack;
  auto visit = [&](const Edge& e) {
    if (!e) return;
    auto [it, added] = states_.try_emplace(e.node.get());
    ++it->second.waiting;
    if (added) stack.push_back(e.node.get());
  };
  for (const Edge& e : pass_.roots) visit(e);
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    for (const Edge& e : n->edges()) visit(e);
  }
}

/// A node is needed if a wanted edge is reached through it.
void Engine::mark_needed() {
  for (size_t i = 0; i < pass_.wanted.size(); ++i) {
    const Edge& e = pass_.wanted[i];
    auto it = states_.find(e.node.get());
    if (it == states_.end()) continue;
    if (pass_.accumulate && e.node->leaf_hooks())
      it->second.needed = true;
    else
      it->second.captures.emplace_back(e.input, static_cast<int>(i));
  }
  struct Frame {
    Node* node;
    size_t next;
  };
  std::unordered_map<const Node*, bool> seen;
  std::vector<Frame> stack;
  for (const Edge& root : pass_.roots) {
    if (!root || !seen.try_emplace(root.node.get()).second) continue;
    stack.push_back({root.node.get(), 0});
    while (!stack.empty()) {
      Frame& f = stack.back();
      const auto edges = f.node->edges();
      if (f.next < edges.size()) {
        Node* child = edges[f.next++].node.get();
        if (child && seen.try_emplace(child).second) stack.push_back({child, 0});
        continue;
      }
      bool needed = states_[f.node].needed;
      for (const Edge& e : edges) needed = needed || (e && wanted(*e.node));
      states_[f.node].needed = needed;
      stack.pop_back();
    }
  }
}

void Engine::deliver(const Edge& e, Tensor&& g) {
  if (!g.defined()) return;
  State& s = states_[e.node.get()];
  if (s.grads.empty()) s.grads.resize(e.node->input_count());
  Tensor& slot = s.grads[e.input];
  slot = slot.defined() ? gradient_ops::accumulate(std::move(slot), g) : std::move(g);
}

void Engine::arrive(const Edge& e) {
  if (--states_[e.node.get()].waiting == 0) ready_.push({e.node, order_++});
}

void Engine::run_tensor_hooks(Node& node, Tensors& grads) {
  auto run = [](const HookList<GradHook>& hooks, Tensor& g) {
    if (!g.defined() || hooks.empty()) return;
    for (const GradHook& hook : hooks.snapshot()) {
      Tensor r = hook(g);
      if (!r.defined()) continue;
      FL_CHECK(gradient_ops::same_sizes(r.sizes(), g.sizes()), RuntimeError,
               "hook has changed the size of value: it got {} and returned {}", to_string(g.sizes()),
               to_string(r.sizes()));
      FL_CHECK(r.dtype() == g.dtype(), RuntimeError,
               "hook has changed the type of value: it got {} and returned {}", name(g.dtype()),
               name(r.dtype()));
      g = std::move(r);
    }
  };
  if (const auto* hooks = node.leaf_hooks()) run(*hooks, grads[0]);
  if (!node.hooks()) return;
  for (size_t i = 0; i < node.hooks()->tensors.size(); ++i) {
    const auto on_tensor = node.hooks()->tensors[i];
    run(on_tensor.hooks, grads[on_tensor.input]);
  }
  for (const NodeHooks::Retain& r : node.hooks()->retain) {
    const Tensor& g = grads[r.input];
    if (!g.defined()) continue;
    r.meta->grad = r.meta->grad.defined() ? gradient_ops::add(r.meta->grad, g) : gradient_ops::clone(g);
  }
}

void Engine::call(Node& node, Tensors grads) {
  NodeHooks* hooks = node.hooks();
  if (hooks)
    for (const NodePreHook& hook : hooks->pre.snapshot()) hook(grads);
  const bool has_post = hooks && !hooks->post.empty();
  Tensors kept = has_post ? grads : Tensors{};
  Tensors result = node.apply(std::move(grads));
  if (!pass_.keep_graph) node.release_saved();
  if (has_post)
    for (const NodePostHook& hook : hooks->post.snapshot()) hook(result, kept);
  kept.clear();
  const auto edges = node.edges();
  FL_CHECK(result.size() == edges.size(), RuntimeError,
           "function {} returned an incorrect number of gradients (expected {}, got {})", node.name(),
           edges.size(), result.size());
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!edges[i]) continue;
    Tensor g = std::move(result[i]);
    if (is_wanted(*edges[i].node) && g.defined()) {
      const TensorSpec& spec = edges[i].node->input_spec(edges[i].input);
      if (g.dtype() != spec.dtype || !gradient_ops::same_sizes(g.sizes(), spec.sizes))
        g = gradient_ops::fit(g, spec, node, static_cast<int>(i));
      deliver(edges[i], std::move(g));
    }
    arrive(edges[i]);
  }
}

void Engine::run_node(Node& node) {
  State& s = states_[&node];
  Tensors grads = std::move(s.grads);
  if (grads.empty()) grads.resize(node.input_count());
  if (wants_all()) {
    run_tensor_hooks(node, grads);
    return call(node, std::move(grads));
  }
  // As PyTorch does: where the pass goes on from here, a wanted gradient is the one before the hooks.
  if (!s.needed) run_tensor_hooks(node, grads);
  for (auto [input, index] : s.captures) captured_[index] = grads[input];
  if (!s.needed) {
    for (const Edge& e : node.edges())
      if (e) arrive(e);
    return;
  }
  run_tensor_hooks(node, grads);
  call(node, std::move(grads));
}

Tensors Engine::run() {
  StateGuard<bool> grad_mode(&DispatchState::grad_enabled, pass_.create_graph);
  StateGuard<bool> above(&DispatchState::below_autograd, false);
  const Engine* outer = std::exchange(current_engine, this);
  struct Restore {
    const Engine* outer;
    ~Restore() { current_engine = outer; }
  } restore{outer};
  count_dependencies();
  if (!wants_all()) mark_needed();
  for (size_t i = 0; i < pass_.roots.size(); ++i) deliver(pass_.roots[i], std::move(pass_.root_grads[i]));
  pass_.root_grads.clear();
  for (const Edge& e : pass_.roots) arrive(e);
  while (!ready_.empty()) {
    Ref<Node> node = ready_.top().node;
    ready_.pop();
    run_node(*node);
    release_iteratively(std::move(node));
  }
  return std::move(captured_);
}

}  // namespace

Tensors run_backward(BackwardPass pass) { return Engine(std::move(pass)).run(); }

bool Node::wants(size_t edge) const {
  const Node* target = edges_[edge].node.get();
  if (static_cast<int>(edge) == redirected_edge_) target = redirected_to_;
  return target && is_wanted(*target);
}

bool is_wanted(const Node& node) { return !current_engine || current_engine->is_wanted(node); }

uint64_t current_pass() { return current_engine ? current_engine->number() : 0; }

bool is_reached(const Node& node) { return current_engine && current_engine->is_reached(node); }

}  // namespace fl
