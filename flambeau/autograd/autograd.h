// Automatic differentiation as users see it: backward, grad, hooks, modes.
#pragma once
#include <any>
#include <optional>

#include "flambeau/autograd/node.h"
#include "flambeau/op/dispatch.h"

namespace fl {

/// Puts autograd around every call of an operator. Call once, before the first tensor is made.
void enable_autograd();

/// The node that t is an output of; null for a leaf.
Ref<Node> grad_fn(const Tensor& t);
int output_nr(const Tensor& t);
/// Makes t a leaf that needs no gradient. Raises RuntimeError on a view.
void detach_in_place(const Tensor& t);
bool is_view(const Tensor& t);
/// What t is a view of; undefined if it is none.
Tensor view_base(const Tensor& t);
int64_t version(const Tensor& t);

struct BackwardOptions {
  std::optional<bool> retain_graph;  ///< keep saved tensors for another pass; default: create_graph
  /// Record the pass itself. A leaf whose .grad was made so keeps itself alive until .grad is cleared.
  bool create_graph = false;
};
/// Adds the gradients of the sum of tensors * gradients to `.grad` of the leaves (or of `inputs` only).
/// Undefined gradients stand for 1, for tensors of one element.
void backward(const Tensors& tensors, Tensors gradients, BackwardOptions options = {},
              const std::optional<Tensors>& inputs = {});
void backward(const Tensor& t, const Tensor& gradient = {}, BackwardOptions options = {},
              const std::optional<Tensors>& inputs = {});
/// The gradients by the inputs. One that the outputs don't depend on is an error unless allow_unused, and
/// then undefined.
Tensors grad(const Tensors& outputs, const Tensors& inputs, Tensors grad_outputs = {},
             BackwardOptions options = {}, bool allow_unused = false);

/// The hook gets the gradient by t (the whole of it, once a pass) and may replace it.
HookHandle register_hook(const Tensor& t, GradHook hook);
/// Runs after a leaf's `.grad` was added to.
HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, std::function<void(const Tensor&)> hook);
/// Called with every node once it is recorded, on any thread; empty: nobody is. For the search for errors.
void set_node_observer(std::function<void(const Ref<Node>&)> observer);
HookHandle register_node_pre_hook(Node& node, NodePreHook hook);
HookHandle register_node_hook(Node& node, NodePostHook hook);
/// Keeps `.grad` of a tensor that is not a leaf.
void retain_grad(const Tensor& t);
bool retains_grad(const Tensor& t);

// Modes of this thread, for a scope.
struct NoGradGuard : StateGuard<bool> {
  NoGradGuard() : StateGuard(&DispatchState::grad_enabled, false) {}
};
struct EnableGradGuard : StateGuard<bool> {
  EnableGradGuard() : StateGuard(&DispatchState::grad_enabled, true) {}
};
/// Tensors made inside carry no version and are never recorded; cheaper than NoGradGuard.
struct InferenceGuard {
  explicit InferenceGuard(bool on = true)
      : inference_(&DispatchState::inference, on), grad_(&DispatchState::grad_enabled, !on) {}

 private:
  StateGuard<bool> inference_, grad_;
};

/// While alive, tensors that this thread saves for backward go through pack, and come back through unpack.
class SavedTensorHooks {
 public:
  using Pack = std::function<std::any(const Tensor&)>;
  using Unpack = std::function<Tensor(const std::any&)>;
  SavedTensorHooks(Pack pack, Unpack unpack);
  ~SavedTensorHooks();
  SavedTensorHooks(const SavedTensorHooks&) = delete;
};

}  // namespace fl
