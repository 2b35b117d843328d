// Node: one recorded call, from the gradients by its outputs to the gradients by its inputs.
#pragma once
#include <mutex>
#include <span>
#include <string>

#include "flambeau/autograd/hook_list.h"
#include "flambeau/op/grad_ctx.h"

namespace fl {

class Node;
struct AutogradMeta;

/// Where a gradient goes: output number `input` of the forward call is input number `input` of the node.
struct Edge {
  Ref<Node> node;
  int input = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

/// Gets the gradient by a tensor; returns another one in its place, or the undefined tensor to leave it.
using GradHook = std::function<Tensor(const Tensor& grad)>;
/// May change the gradients that the node is about to get.
using NodePreHook = std::function<void(Tensors& grad_outputs)>;
/// May change the gradients that the node returned.
using NodePostHook = std::function<void(Tensors& grad_inputs, const Tensors& grad_outputs)>;

struct NodeHooks {
  struct OnTensor {
    int input;
    HookList<GradHook> hooks;
  };
  struct Retain {
    int input;
    AutogradMeta* meta;  ///< takes itself out when it goes
  };
  std::vector<OnTensor> tensors;
  std::vector<Retain> retain;
  HookList<NodePreHook> pre;
  HookList<NodePostHook> post;
};

class Node : public RefCounted {
 public:
  Node();
  /// Nodes made by one thread are numbered in order; the engine runs later ones first.
  explicit Node(uint64_t sequence) : sequence_(sequence) {}

  virtual std::string name() const = 0;  ///< "MulBackward0"
  /// Takes a gradient for every input (undefined: zero) and returns one for every edge.
  virtual Tensors apply(Tensors&& grads) = 0;
  /// Sizes, dtype and device that a gradient for this input must have.
  virtual const TensorSpec& input_spec(int input) const = 0;
  virtual int input_count() const = 0;
  /// Frees what was saved for the gradient; the node can then not run again if it saved anything.
  virtual void release_saved() {}
  /// Hooks on the leaf that this node accumulates into.
  virtual const HookList<GradHook>* leaf_hooks() const { return nullptr; }

  std::span<Edge> edges() const { return edges_; }
  uint64_t sequence() const { return sequence_; }
  NodeHooks* hooks() const { return hooks_.get(); }
  NodeHooks& make_hooks() {
    if (!hooks_) hooks_ = std::make_unique<NodeHooks>();
    return *hooks_;
  }
  /// Whether the running pass wants the gradient for this edge.
  bool wants(size_t edge) const;
  /// For a node that runs inside another: the node that stands behind one of its edges there.
  void redirect(size_t edge, const Node* target) {
    redirected_edge_ = static_cast<int>(edge);
    redirected_to_ = target;
  }
  /// A lock for short work on this node; shared with other nodes, so never hold two or call out under it.
  std::mutex& mutex() const;

 protected:
  /// For destructors of subclasses: gives up the edges without recursion.
  void drop_edges();
  std::span<Edge> edges_;

 private:
  uint64_t sequence_;
  int redirected_edge_ = -1;
  const Node* redirected_to_ = nullptr;
  std::unique_ptr<NodeHooks> hooks_;
};

/// A node whose edges are a vector.
class SimpleNode : public Node {
 public:
  using Node::Node;
  ~SimpleNode() override { drop_edges(); }
  void set_edges(std::vector<Edge> edges) {
    edge_list_ = std::move(edges);
    edges_ = edge_list_;
  }

 private:
  std::vector<Edge> edge_list_;
};

/// Gives up a reference. Nodes that it frees are freed one after the other, however deep the graph is.
void release_iteratively(Ref<Node> node);

/// The node's name as messages give it: "Mul" for MulBackward0.
std::string short_name(std::string node_name);

}  // namespace fl
