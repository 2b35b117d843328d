// What autograd keeps with a tensor.
#pragma once
#include "flambeau/autograd/node.h"
#include "flambeau/base/small_vector.h"
#include "flambeau/op/op_def.h"

namespace fl {

class AccumulateGrad;

/// One view operator with its arguments (the first is left open), and the steps before it: how a view is made
/// from its base.
struct ViewStep : RefCounted {
  const OpInfo* op = nullptr;
  SmallVector<Value, 4> args;
  Ref<ViewStep> previous;
  ~ViewStep() override;
};

/// Where a view comes from, as far as changing it in place is concerned.
enum class ViewOrigin : uint8_t { Recorded, NoGrad, Inference, MultipleOutputs, CustomFunction };

struct ViewInfo {
  Tensor base;          ///< not a view itself
  Ref<ViewStep> steps;  ///< null: made by a custom function, can't be replayed
  ViewOrigin origin = ViewOrigin::Recorded;
  const OpInfo* list_op = nullptr;  ///< what returned several views, of which this is number list_index
  int list_index = 0;
  int64_t version = 0;  ///< of the storage when the view's grad_fn was made
};

struct AutogradMeta : AutogradMetaBase {
  ~AutogradMeta() override;
  Tensor grad;
  Ref<Node> grad_fn;
  int output_nr = 0;
  bool retains_grad = false;
  AccumulateGrad* accumulator = nullptr;  ///< not owned; under meta_mutex
  std::unique_ptr<ViewInfo> view;
  HookList<GradHook> leaf_hooks;
  HookList<std::function<void(const Tensor&)>> post_accumulate;
};

inline AutogradMeta* meta(const Tensor& t) { return static_cast<AutogradMeta*>(t.impl()->autograd.get()); }
AutogradMeta& make_meta(const Tensor& t);

/// How often t or another tensor on its storage was changed in place.
int64_t version(const Tensor& t);
inline bool is_differentiable(DType d) { return category(d) >= DTypeCategory::Floating; }

/// Where the gradient by t goes: its node, its accumulator if it is a leaf, nowhere if it needs none.
Edge gradient_edge(const Tensor& t);
/// Makes t an output of a node.
void set_history(const Tensor& t, Ref<Node> node, int output_nr);
/// Another tensor on the same storage that autograd knows nothing of.
Tensor shallow_copy(const Tensor& t);
/// Moves the note of retain_grad() to the tensor's new node.
void move_retain(AutogradMeta& m, Node* old_node);

}  // namespace fl
